/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a fuzz target on every file of a folder: a regression test of earlier findings. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void feed(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        perror(path);
        exit(1);
    }
    size_t n_bytes = (size_t)ftell(f);
    rewind(f);
    /* Exactly as long as the input, so that a sanitizer detects an overread. */
    uint8_t *data = malloc(n_bytes ? n_bytes : 1);
    if (!data || fread(data, 1, n_bytes, f) != n_bytes)
        exit(1);
    fclose(f);
    LLVMFuzzerTestOneInput(data, n_bytes);
    free(data);
}

int main(int argc, char **argv)
{
    DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
    unsigned n_inputs = 0;
    if (!dir) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 1;
    }
    for (struct dirent *e; (e = readdir(dir));) {
        char path[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", argv[1], e->d_name);
        feed(path);
        n_inputs++;
    }
    closedir(dir);
    printf("%u inputs\n", n_inputs);
    return n_inputs == 0; /* an empty corpus fails */
}
