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

/* Words of the file, in `words`, which has room. They are cut out of `text`. The -- of a command
 * line is none: the rest would be no arguments. */
static size_t split_words(char *text, char **words)
{
    size_t n = 0;
    char *save = NULL;

    for (char *w = strtok_r(text, " \t", &save); w; w = strtok_r(NULL, " \t", &save))
        if (strcmp(w, "--") != 0)
            words[n++] = w;
    return n;
}

/* All lines of [eal] in one text, for free(). */
static char *join_lines(const struct nj_policy_file *f, size_t *n_bytes)
{
    static const char preset[] = "--preset=";
    size_t n = 1;

    for (uint32_t i = 0; i < f->n_eal; i++)
        n += strlen(f->eal[i]->value) + sizeof preset;
    char *text = malloc(n), *at = text;
    for (uint32_t i = 0; text && i < f->n_eal; i++) {
        at = f->eal[i]->key[0] == 'p' ? stpcpy(at, preset) : at;
        at = stpcpy(stpcpy(at, f->eal[i]->value), " ");
    }
    if (text)
        *at = '\0';
    *n_bytes = n;
    return text;
}

int nj_eal_args_expand(struct nj_presets *out, const struct nj_policy_file *f, int argc,
                       char **argv, char *why, size_t n)
{
    static char program[] = "nightjar";
    size_t n_bytes = 0, n_words = 0;

    if (!f || f->n_eal == 0)
        return nj_presets_expand_eal_args(out, argc, argv, why, n);
    char *text = join_lines(f, &n_bytes);
    char **words = calloc(n_bytes / 2 + 1, sizeof *words);
    char **all = calloc(n_bytes / 2 + 2 + (size_t)argc, sizeof *all);
    int n_all = 0, rc = -1;
    bool skip = false;
    if (text && words && all) {
        n_words = split_words(text, words);
        all[n_all++] = argc > 0 ? argv[0] : program;
        for (size_t i = 0; i < n_words; i++) {
            skip = words[i][0] == '-' ? is_replaced(words[i], argc, argv) : skip;
            if (!skip)
                all[n_all++] = words[i];
        }
        for (int i = 1; i < argc; i++)
            all[n_all++] = argv[i];
        rc = nj_presets_expand_eal_args(out, n_all, all, why, n);
        out->user = NULL;
        out->file_text = text; /* which has words of the arguments */
        text = NULL;
    } else {
        *out = (struct nj_presets){.argc = 0};
        nj_set_error(why, n, "out of memory");
    }
    free(all);
    free(words);
    free(text);
    return rc;
}
