/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-relaxed [PART-OF-A-NAME [FIRST-RUN [RUNS]]]: runs worlds of threads under C11's memory model
 * (relaxed.h). Exit status 0 if no run fails; otherwise it ends with the first failing run and
 * prints its steps. NJ_TEST_SEED also sets the first run.
 */
#include <stdlib.h>
#include <string.h>

#include "relaxed.h"

static uint64_t first_run = 1;
static uint32_t n_runs = 50000; /* of each world: some seconds in total */

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
