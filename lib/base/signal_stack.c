/* SPDX-License-Identifier: BSD-3-Clause */
/* Alternate signal stacks with a guard page (sigaltstack(2)). */
#include "base/signal_stack.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* The size of the kernel's frame depends on the CPU: AVX-512 state takes more than 2 KiB. */
static size_t stack_bytes(size_t page)
{
    long least = sysconf(_SC_MINSIGSTKSZ);
    size_t n = NJ_ALTSTACK_BYTES + (least > 0 ? (size_t)least : MINSIGSTKSZ);

    return (n + page - 1) / page * page;
}

void *nj_altstack_install(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = stack_bytes(page);
    stack_t is;

    if (sigaltstack(NULL, &is) != 0 || !(is.ss_flags & SS_DISABLE))
        return NULL;
    uint8_t *mem = mmap(NULL, page + n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mem == MAP_FAILED)
        return NULL;
    stack_t wanted = {.ss_sp = mem + page, .ss_size = n};
    if (mprotect(mem + page, n, PROT_READ | PROT_WRITE) == 0 && sigaltstack(&wanted, NULL) == 0)
        return mem;
    munmap(mem, page + n);
    return NULL;
}

void nj_altstack_remove(void *stack)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    stack_t none = {.ss_flags = SS_DISABLE};

    if (stack && sigaltstack(&none, NULL) == 0)
        munmap(stack, page + stack_bytes(page));
}
