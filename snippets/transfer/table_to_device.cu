// A block table on its way to a kernel in CUDA C++: from pageable and from pinned memory.
//
// Lesson: l1_table_to_device. Build and run: python scripts/transfer_programs.py cuda
// The kernel finds the slot of each sequence's last token; the host checks every slot of every step.
// Prints one JSON object.

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int kPageSize = 16;

static void check(cudaError_t error, int line) {
    if (error != cudaSuccess) {
        std::fprintf(stderr, "table_to_device.cu:%d: %s\n", line, cudaGetErrorString(error));
        std::exit(1);
    }
}
#define CHECK(call) check(call, __LINE__)

// region kernel
// Grid covers B; thread b owns slots[b].
__global__ void last_slots(
    int* slots,             // [B], out: page * page_size + slot in the page
    const int* table,       // [B, max_pages], in
    int batch_size, int max_pages,
    int seq_len) {          // of every sequence, at least 1
    int b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b < batch_size) {
        int token = seq_len - 1;
        slots[b] = table[b * max_pages + token / kPageSize] * kPageSize + token % kPageSize;
    }
}
// endregion kernel

// What the kernels of the step before are to this one: something long on the stream.
__global__ void keep_busy(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {}
}

static double now_us() {
    using namespace std::chrono;
    return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

struct Sample {
    double host_us;   // until the call of the copy returned
    double ready_us;  // until the host knew that the copy had run
};

struct Buffers {
    int *table, *device_table, *slots, *device_slots;
    cudaStream_t stream;
    cudaEvent_t copied;
};

// The kernel has found the last slot of every sequence in the table of this step.
static void check_slots(const Buffers& x, int batch_size, int max_pages, int number) {
    CHECK(cudaMemcpyAsync(
        x.slots, x.device_slots, batch_size * sizeof(int), cudaMemcpyDeviceToHost, x.stream));
    CHECK(cudaStreamSynchronize(x.stream));
    for (int b = 0; b < batch_size; ++b) {
        int page = (b + 1) * max_pages - 1 + number;
        if (x.slots[b] != page * kPageSize + kPageSize - 1) {
            std::fprintf(stderr, "sequence %d: slot %d; wanted that of page %d\n", b, x.slots[b], page);
            std::exit(1);
        }
    }
}

// region step
// One step: the host writes a table, it is copied, the kernel reads it.
static Sample step(
    const Buffers& x, int batch_size, int max_pages, int number, bool busy) {
    size_t entries = size_t(batch_size) * max_pages;
    size_t bytes = entries * sizeof(int);
    CHECK(cudaEventSynchronize(x.copied));  // the table is ours  //: cuda_wait
    for (size_t i = 0; i < entries; ++i) x.table[i] = int(i) + number;
    if (busy) keep_busy<<<1, 1, 0, x.stream>>>(4'000'000);  // about 2 ms
    double start = now_us();
    CHECK(cudaMemcpyAsync(  //: cuda_copy
        x.device_table, x.table, bytes, cudaMemcpyHostToDevice, x.stream));  //: cuda_copy
    double returned = now_us();
    CHECK(cudaEventRecord(x.copied, x.stream));  //: cuda_record
    last_slots<<<(batch_size + 127) / 128, 128, 0, x.stream>>>(  //: cuda_launch
        x.device_slots, x.device_table, batch_size, max_pages,
        max_pages * kPageSize);  //: cuda_launch
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(x.copied));
    double ready = now_us();
    check_slots(x, batch_size, max_pages, number);
    return {returned - start, ready - start};
}
// endregion step

static void print_quantiles(const char* name, std::vector<double> values) {
    std::sort(values.begin(), values.end());
    auto at = [&](double share) { return values[size_t(share * (values.size() - 1) + 0.5)]; };
    std::printf("\"%s\": {\"p20\": %.2f, \"p50\": %.2f, \"p80\": %.2f}", name, at(0.2), at(0.5), at(0.8));
}

int main(int argc, char** argv) {
    int repeats = argc > 1 ? std::max(1, std::atoi(argv[1])) : 30;
    const int shapes[][2] = {{1, 64}, {8, 256}, {64, 2048}, {256, 8192}};  // B x max_pages
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    std::printf("{\"gpu\": \"%s\", \"repeats\": %d, \"rows\": [", properties.name, repeats);
    const char* separator = "\n";
    for (auto [batch_size, max_pages] : shapes) {
        size_t bytes = size_t(batch_size) * max_pages * sizeof(int);
        for (bool pinned : {false, true}) {
            Buffers x;
            CHECK(cudaStreamCreateWithFlags(&x.stream, cudaStreamNonBlocking));
            CHECK(cudaEventCreateWithFlags(&x.copied, cudaEventDisableTiming));
            CHECK(cudaMalloc(&x.device_table, bytes));
            CHECK(cudaMalloc(&x.device_slots, batch_size * sizeof(int)));
            CHECK(cudaMallocHost(&x.slots, batch_size * sizeof(int)));
            if (pinned) CHECK(cudaMallocHost(&x.table, bytes));  //: cuda_pinned
            else x.table = static_cast<int*>(std::malloc(bytes));  //: cuda_pageable
            std::vector<double> host, ready, busy;
            for (int i = -20; i < repeats; ++i) {  // twenty to warm up
                Sample idle = step(x, batch_size, max_pages, i + 20, false);
                if (i >= 0) host.push_back(idle.host_us), ready.push_back(idle.ready_us);
            }
            for (int i = 0; i < 9; ++i) busy.push_back(step(x, batch_size, max_pages, i, true).host_us);
            std::printf("%s {\"way\": \"%s\", \"batch_size\": %d, \"max_pages\": %d, ", separator,
                        pinned ? "cuda_pinned" : "cuda_pageable", batch_size, max_pages);
            print_quantiles("host_us", host);
            std::printf(", ");
            print_quantiles("ready_us", ready);
            std::printf(", ");
            print_quantiles("host_busy_us", busy);
            std::printf("}");
            separator = ",\n";
            if (pinned) CHECK(cudaFreeHost(x.table));
            else std::free(x.table);
            CHECK(cudaFreeHost(x.slots));
            CHECK(cudaFree(x.device_slots));
            CHECK(cudaFree(x.device_table));
            CHECK(cudaEventDestroy(x.copied));
            CHECK(cudaStreamDestroy(x.stream));
        }
    }
    std::printf("\n]}\n");
}
