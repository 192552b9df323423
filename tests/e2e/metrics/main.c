/* SPDX-License-Identifier: BSD-3-Clause */
/* nightjar-test-metrics FOLDER prometheus|openmetrics: prints the metrics of a server that does
 * nothing. The folder exists and is empty. */
#include <stdio.h>
#include <string.h>

#include "support/metrics_view.h"

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    struct metrics_view *m = metrics_view_new(argv[1], 1);
    nj__metrics_write(&m->v, strcmp(argv[2], "openmetrics") == 0, stdout);
    metrics_view_free(m);
    return fflush(stdout) == 0 ? 0 : 1;
}
