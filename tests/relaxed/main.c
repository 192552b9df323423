/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-relaxed [PART-OF-A-NAME [FIRST-RUN [RUNS]]]: worlds of threads under C11's memory model
 * (relaxed.h). Exit status 0 when nothing is wrong in any run; it ends with the first run in which
 * something is, and prints the steps that led there. NJ_TEST_SEED is the first run, too.
 */
#include <stdlib.h>
#include <string.h>

#include "relaxed.h"

static uint64_t first_run = 1;
static uint32_t n_runs = 50000; /* of each world: together they take some seconds */

static bool run(const struct relaxed_world *worlds, const char *only)
{
    for (; worlds->name; worlds++)
        if (strstr(worlds->name, only) && !relaxed_run(worlds, first_run, n_runs))
            return false;
    return true;
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "", *seed = getenv("NJ_TEST_SEED");

    if (seed)
        first_run = strtoull(seed, NULL, 10);
    if (argc > 2)
        first_run = strtoull(argv[2], NULL, 10);
    if (argc > 3)
        n_runs = (uint32_t)strtoul(argv[3], NULL, 10);
    return run(relaxed_strategy_worlds, only) && run(relaxed_reserved_worlds, only) ? 0 : 1;
}
