"""L1's example: A grows to 68 tokens beside B, in pages of 32; C is forked off A and gets a token."""

from kernels.l1_page_table import OutOfPagesError, PageTable

table = PageTable(10, 32)
z, a, b = table.allocate(50), table.allocate(30), table.allocate(60)
for _ in range(38):
    table.append([a, b])
table.free(z)
print("A, B:", table.pages(a), table.pages(b), "free:", table.num_free)

c = table.fork(a)
print("C, a fork of A:", table.pages(c), "free:", table.num_free)
growth = table.append([c])
print("a token for C: slot", growth.slots[0], "after", growth.copies[0])
print("C:", table.pages(c), "free:", table.num_free)

try:
    table.append([a, b, c], 100)
except OutOfPagesError as error:
    print(error)
print("A still has", table.num_tokens(a), "tokens")
