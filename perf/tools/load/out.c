/* SPDX-License-Identifier: BSD-3-Clause */
#include "out.h"

#include <errno.h>
#include <string.h>

static void print_error(const char *path)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, path, strerror(errno));
}

FILE *out_open(const char *path)
{
    FILE *f = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");

    if (!f)
        print_error(path);
    return f;
}

bool out_close(FILE *f, const char *path)
{
    bool failed = ferror(f) != 0;

    if ((f == stdout ? fflush(f) : fclose(f)) == 0 && !failed)
        return true;
    print_error(path);
    return false;
}
