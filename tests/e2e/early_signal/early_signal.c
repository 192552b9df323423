/* SPDX-License-Identifier: BSD-3-Clause */
/* A library for LD_PRELOAD: its constructor, which runs before main() and those of DPDK, sends the
 * process the signal whose number is in NJ_EARLY_SIGNAL. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void send_early_signal(void)
{
    const char *number = getenv("NJ_EARLY_SIGNAL");

    if (number)
        kill(getpid(), atoi(number));
}
