/* SPDX-License-Identifier: BSD-3-Clause */
/* Joins the EAL arguments of the file ([eal]) with those of the command line. */
#include "config/eal_args.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/set_error.h"

/* Names of the EAL that stand for each other. */
static const char *const cores[] = {"-l", "-c", "--lcores", "--coremask"};
static const char *const devices[] = {"-a", "-b", "-w", "--allow", "--vdev", "--block", "--preset"};

/* The value of a letter may follow in the same word. */
static bool has_name(const char *word, const char *name)
{
    size_t n = strlen(name);

    return strncmp(word, name, n) == 0 && (n == 2 || word[n] == '\0' || word[n] == '=');
}

static bool is_one_of(const char *word, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (has_name(word, names[i]))
            return true;
    return false;
}

/* Does `a` set what `b` sets? */
static bool same_argument(const char *a, const char *b)
{
    if (is_one_of(a, cores, NJ_ARRAY_LEN(cores)))
        return is_one_of(b, cores, NJ_ARRAY_LEN(cores));
    if (is_one_of(a, devices, NJ_ARRAY_LEN(devices)))
        return is_one_of(b, devices, NJ_ARRAY_LEN(devices));
    size_t n = a[1] == '-' ? strcspn(a, "=") : 2;
    return strncmp(a, b, n) == 0 && (n == 2 || b[n] == '\0' || b[n] == '=');
}

static bool is_replaced(const char *word, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (argv[i][0] == '-' && same_argument(word, argv[i]))
            return true;
    return false;
}

/* All lines of [eal] in one text, for free(). NULL: there is no memory. */
static char *join_lines(const struct nj_policy_file *f)
{
    static const char preset[] = "--preset=";
    size_t n = 1;

    for (uint32_t i = 0; i < f->n_eal; i++)
        n += strlen(f->eal[i]->value) + sizeof preset;
    char *text = calloc(n, 1), *at = text;
    for (uint32_t i = 0; text && i < f->n_eal; i++) {
        at = f->eal[i]->key[0] == 'p' ? stpcpy(at, preset) : at;
        at = stpcpy(stpcpy(at, f->eal[i]->value), " ");
    }
    return text;
}

/* The -- of a command line is no word of the file: the rest would be no arguments. */
int nj_eal_args_expand(struct nj_presets *out, const struct nj_policy_file *f, int argc,
                       char **argv, char *why, size_t n)
{
    static char program[] = "nightjar";
    bool skip = false;
    int n_all = 0;

    if (!f || f->n_eal == 0)
        return nj_presets_expand_eal_args(out, argc, argv, why, n);
    char *text = join_lines(f), *save = NULL;
    char **all = text ? calloc(strlen(text) / 2 + 2 + (size_t)argc, sizeof *all) : NULL;
    *out = (struct nj_presets){.argc = 0};
    if (!all) {
        free(text);
        return nj_set_error(why, n, "out of memory");
    }
    all[n_all++] = argc > 0 ? argv[0] : program;
    for (char *w = strtok_r(text, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
        if (strcmp(w, "--") == 0)
            continue;
        skip = w[0] == '-' ? is_replaced(w, argc, argv) : skip;
        if (!skip)
            all[n_all++] = w;
    }
    for (int i = 1; i < argc; i++)
        all[n_all++] = argv[i];
    int rc = nj_presets_expand_eal_args(out, n_all, all, why, n);
    free(all);
    free(text);
    return rc;
}
