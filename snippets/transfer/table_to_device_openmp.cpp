// A block table on its way to a kernel in OpenMP: the program declares what each side needs.
//
// Lesson: l1_table_to_device. Build and run: python scripts/transfer_programs.py openmp
// Compiled for the host alone it runs there, where both sides are one memory and nothing moves.
// Prints one JSON object.

#include <omp.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int kPageSize = 16;

// region step
// slots[b]: of the last token of sequence b.
static void last_slots(
    int* slots, const int* table, const int* seq_lens, int batch_size, int max_pages) {
    // What is read, and what is written. The runtime finds the table on the
    // device already; it moves the lengths there, and the slots back.
    #pragma omp target teams distribute parallel for \
        map(to : table[0 : batch_size * max_pages]) \
        map(to : seq_lens[0 : batch_size]) map(from : slots[0 : batch_size])
    for (int b = 0; b < batch_size; ++b) {
        int token = seq_lens[b] - 1;
        int page = table[b * max_pages + token / kPageSize];
        slots[b] = page * kPageSize + token % kPageSize;
    }
}
// endregion step

int main() {
    const int batch_size = 3, max_pages = 4, steps = 2;
    std::vector<int> table{9, 3, 7, -1, 5, -1, -1, -1, 0, 1, -1, -1}, slots(batch_size);
    std::vector<int> seq_lens{36, 16, 17};  // before the step's new token
    int *t = table.data(), *s = slots.data(), *n = seq_lens.data();

    std::printf("{\"devices\": %d, \"slots\": [", omp_get_num_devices());
    // region data
    // The table stays on the device for the whole block: one map, many kernels.
    #pragma omp target data map(to : t[0 : batch_size * max_pages])
    {
        for (int step = 0; step < steps; ++step) {
            for (int b = 0; b < batch_size; ++b) {
                n[b] += 1;
                if ((n[b] - 1) % kPageSize == 0) {  // a new page: one entry changes
                    int entry = b * max_pages + (n[b] - 1) / kPageSize;
                    t[entry] = 20 + b;
                    #pragma omp target update to(t[entry : 1])
                }
            }
            last_slots(s, t, n, batch_size, max_pages);
            std::printf("%s[%d, %d, %d]", step ? ", " : "", s[0], s[1], s[2]);
        }
    }
    // endregion data
    std::printf("]}\n");
}
