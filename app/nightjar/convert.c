/* SPDX-License-Identifier: BSD-3-Clause */
/* `nightjar convert`: prints the configuration file that equals a command line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/option_table.h"
#include "options.h"

#define VALUE_MAX  2047 /* bytes, as the parser of the file accepts */
#define LINE_BYTES 80   /* bytes of EAL arguments in a line, if there are several */

/* Prints a value, if the file can have it. */
static bool put_value(const char *value)
{
    size_t n = strlen(value);
    bool ok = n > 0 && n <= VALUE_MAX && !strchr(" \t", value[0]) && !strchr(" \t", value[n - 1]) &&
              !strpbrk(value, "\n\r\v\f");

    for (const char *p = value; ok && *p; p++)
        printf("%s%c", *p == '#' ? "\\" : "", *p);
    if (!ok)
        fprintf(stderr,
                "nightjar: convert: \"%s\": a value of the file has 1 to %d bytes in one "
                "line, and no space at its ends\n",
                value, VALUE_MAX);
    return ok;
}

static bool put_key(const char *key, const char *value)
{
    printf("%s = ", key);
    bool ok = put_value(value);
    putchar('\n');
    return ok;
}

/* The preset at argv[*i], or NULL. Advances *i to its last word. */
static const char *preset_at(int argc, char **argv, int *i)
{
    if (strncmp(argv[*i], "--preset=", 9) == 0)
        return argv[*i] + 9;
    return strcmp(argv[*i], "--preset") == 0 && *i + 1 < argc ? argv[++*i] : NULL;
}

/* A line ends before an argument that would make it too long. */
static bool convert_eal(int argc, char **argv)
{
    size_t n_line = 0;
    bool ok = true;

    if (argc > 1)
        puts("[eal]");
    for (int i = 1; ok && i < argc; i++) {
        const char *preset = preset_at(argc, argv, &i);
        bool begins = argv[i][0] == '-' && n_line + strlen(argv[i]) > LINE_BYTES;
        if (n_line > 0 && (preset || begins)) {
            putchar('\n');
            n_line = 0;
        }
        if (preset) {
            ok = put_key("preset", preset);
            continue;
        }
        if (strpbrk(argv[i], " \t")) {
            fprintf(stderr, "nightjar: convert: \"%s\": an EAL argument of the file has no space\n",
                    argv[i]);
            return false;
        }
        fputs(n_line ? " " : "arguments = ", stdout);
        ok = put_value(argv[i]);
        n_line += strlen(argv[i]) + 1;
    }
    if (n_line > 0)
        putchar('\n');
    return ok;
}

/* Only the last value of an option that has one counts. */
static bool is_last(const struct nj_given *given, size_t n, size_t i)
{
    for (size_t k = i + 1; k < n; k++)
        if (given[k].option == given[i].option)
            return false;
    return true;
}

static bool convert_options(const struct nj_given *given, size_t n)
{
    const char *section = "";
    char key[NJ_OPTION_KEY_BYTES];
    bool ok = true;

    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++)
        for (size_t i = 0; ok && o->section && i < n; i++) {
            if (given[i].option != o || (!nj_option_may_repeat(o) && !is_last(given, n, i)))
                continue;
            if (strcmp(section, o->section) != 0)
                printf("\n[%s]\n", section = o->section);
            ok = put_key(nj_option_key(o, key), given[i].value ? given[i].value : "yes");
        }
    return ok;
}

/* What the file of --config says stays there. */
static bool include_config(const char *path)
{
    char *full = path ? realpath(path, NULL) : NULL;

    if (!full)
        return true;
    puts("# A section that is in both files has to be joined by hand; --check names it.");
    bool ok = put_key("include", full);
    putchar('\n');
    free(full);
    return ok;
}

int nj_app_convert(int argc, char **argv)
{
    struct nj_given *given = calloc((size_t)argc + 1, sizeof *given);
    struct nj_server_config config;
    int n_eal = 1;
    size_t n = 0;

    while (n_eal < argc && strcmp(argv[n_eal], "--") != 0)
        n_eal++;
    nj_server_config_init(&config);
    bool ok = given && n_eal < argc;
    if (!ok)
        fputs("nightjar: convert: no -- found: usage: nightjar convert [EAL arguments] -- "
              "[options]\n",
              stderr);
    if (ok && n_eal > 1 && argv[1][0] != '-') {
        fprintf(stderr, "nightjar: convert: %s: an EAL argument begins with -\n", argv[1]);
        ok = false;
    }
    ok = ok && nj_app_parse_options(argc - n_eal, argv + n_eal, &config, given) == 0;
    while (ok && given[n].option)
        n++;
    ok = ok && include_config(config.policy_file) && convert_eal(n_eal, argv) &&
         convert_options(given, n);
    free(given);
    return ok ? 0 : 2;
}
