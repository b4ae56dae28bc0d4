// A 32-bit program, of no library: reads a byte from its standard input. Exit status 0 when one came.
extern "C" [[noreturn]] void _start() {
  enum { call_exit = 1, call_read = 3 };
  char byte = 0;
  int result = call_read;
  asm volatile("int $0x80" : "+a"(result) : "b"(0), "c"(&byte), "d"(1) : "memory");
  for (;;) asm volatile("int $0x80" ::"a"(call_exit), "b"(result == 1 ? 0 : 1));
}
