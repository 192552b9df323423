/* SPDX-License-Identifier: BSD-3-Clause */
/* Expands --preset NAME,KEY=VALUE,... into EAL arguments, and implements --preset list, --preset
 * NAME,help and --print-preset. The files are in drivers-config. */
#include "config/eal_preset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nightjar/server.h>

#include "base/compiler.h"
#include "base/set_error.h"
#include "config/policy_file.h"
#include "config/settings_validate.h"
#include "dpdk/compat.h"
#include "log/log.h"
#include "topo/pci_driver.h"

#define KEYS_MAX 32u   /* of one --preset */
#define ARG_MAX  1024u /* bytes of one argument */

struct given {
    const char *key, *value;
    char pci[24]; /* if the key is pci: DOMAIN:BUS:DEVICE.FUNCTION */
};

/* One --preset, among the arguments of the user. */
struct request {
    struct nj_presets *out;
    int argc;
    char *const *argv;
    const struct nj_preset *preset;
    struct given given[KEYS_MAX];
    uint32_t n_given;
    char *why; /* receives the reason of an error */
    size_t why_bytes;
};

/* "--preset NAME: what is wrong". Returns -1. */
#define refuse(w, format, ...)                                                                     \
    nj_set_error((w)->why, (w)->why_bytes, "--preset %s: " format, (w)->preset->name, ##__VA_ARGS__)

/* Appends an argument, and takes it over; NULL: there is no memory. */
static int push(const struct request *w, char *word)
{
    struct nj_presets *out = w->out;
    char **more = word ? reallocarray(out->words, (size_t)out->argc + 1, sizeof *more) : NULL;

    if (!more) {
        free(word);
        return nj_set_error(w->why, w->why_bytes, "--preset: out of memory");
    }
    out->words = more;
    more[out->argc++] = word;
    return 0;
}

/* --- NAME,KEY=VALUE --------------------------------------------------------------------------- */

static const char *preset_name(void *unused, uint32_t i)
{
    (void)unused;
    return nj_preset_table[i].name;
}

static const char *key_name(void *keys, uint32_t i)
{
    return ((const struct nj_preset_key *)keys)[i].name;
}

/* ": did you mean NEAR?", or nothing. */
static const char *suggest(const char *near, char text[64])
{
    snprintf(text, 64, near ? ": did you mean %s?" : "%s", near ? near : "");
    return text;
}

static bool read_pci(const char *text, char *out, size_t n)
{
    /* sscanf() would accept white space, signs and 0x */
    return !text[strspn(text, "0123456789abcdefABCDEF:.")] &&
           nj_pci_parse_address(text, out, n) == strlen(text);
}

static bool was_given(const struct request *w, const char *key)
{
    for (uint32_t i = 0; i < w->n_given; i++)
        if (strcmp(w->given[i].key, key) == 0)
            return true;
    return false;
}

static const struct nj_preset_key *find_key(const struct request *w, const char *name)
{
    const struct nj_preset_key *k = w->preset->keys;

    while (k->name && strcmp(k->name, name) != 0)
        k++;
    return k->name ? k : NULL;
}

static int unknown_key(const struct request *w, const char *key)
{
    void *keys = (void *)(uintptr_t)w->preset->keys;
    char meant[64];

    if (!w->preset->keys[0].name)
        return refuse(w, "it takes no keys");
    return refuse(w, "there is no key \"%s\"%s (--preset %s,help shows all)", key,
                  suggest(nj__policy_closest_name(key, key_name, keys), meant), w->preset->name);
}

static int parse_key_value(struct request *w, char *item)
{
    char *value = strchr(item, '=');

    if (!value || !value[1])
        return refuse(w, "expected KEY=VALUE, not \"%s\"", item);
    *value++ = '\0';
    struct given g = {.key = item, .value = value};
    const struct nj_preset_key *key = find_key(w, item);
    if (!key)
        return unknown_key(w, item);
    if (!key->may_repeat && was_given(w, item))
        return refuse(w, "%s= was given twice", item);
    if (strcmp(item, "pci") == 0 && !read_pci(value, g.pci, sizeof g.pci))
        return refuse(w,
                      "pci=%s: expected an address such as 0000:03:00.0 or 03:00.0 (lspci -D lists "
                      "them)",
                      value);
    for (uint32_t i = 0; g.pci[0] && i < w->n_given; i++)
        if (strcmp(w->given[i].pci, g.pci) == 0)
            return refuse(w, "pci=%s was given twice", g.pci);
    if (w->n_given == KEYS_MAX)
        return refuse(w, "more than %u keys", KEYS_MAX);
    w->given[w->n_given++] = g;
    return 0;
}

static int check_needs(const struct request *w)
{
    const char *first = NULL;

    for (const struct nj_preset_key *k = w->preset->keys; k->name; k++) {
        if (k->is_needed && was_given(w, k->name))
            return 0;
        if (k->is_needed && !first)
            first = k->name;
    }
    bool is_pci = first && strcmp(first, "pci") == 0;
    return first ? refuse(w, "%s= is missing%s", first,
                          is_pci ? ": an address such as 0000:03:00.0 (lspci -D lists them)" : "")
                 : 0;
}

static const struct nj_preset *find_preset(const char *name, char *why, size_t n)
{
    char meant[64];

    for (const struct nj_preset *p = nj_preset_table; p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    suggest(nj__policy_closest_name(name, preset_name, NULL), meant);
    nj_set_error(why, n, "--preset %s: there is no such preset%s (--preset list shows all)", name,
                 meant);
    return NULL;
}

/* Cuts the text, to which the result refers. */
static int parse_request(struct request *w, char *text)
{
    const char *name = strsep(&text, ",");

    w->preset = find_preset(name, w->why, w->why_bytes);
    if (!w->preset)
        return -1;
    while (text)
        if (parse_key_value(w, strsep(&text, ",")) != 0)
            return -1;
    return check_needs(w);
}

/* --- the arguments of the file ---------------------------------------------------------------- */

static void add_key(FILE *f, const char *key, const char *value)
{
    fprintf(f, ",%s=%s", strcmp(key, "member") == 0 ? NJ_BOND_MEMBER : key, value);
}

/* Appends the keys of the file, with the user's values or once per PCI address, then the user's
 * other keys. */
static void add_keys(FILE *f, const struct request *w)
{
    bool is_used[KEYS_MAX] = {false};

    for (const struct nj_preset_argument *a = w->preset->vdev_keys; a->word; a++) {
        bool is_pci = strcmp(a->value, "{pci}") == 0, is_replaced = is_pci;
        for (uint32_t i = 0; i < w->n_given; i++) {
            const struct given *g = &w->given[i];
            if (is_pci ? !g->pci[0] : strcmp(g->key, a->word) != 0)
                continue;
            add_key(f, a->word, is_pci ? g->pci : g->value);
            is_replaced = is_used[i] = true;
        }
        if (!is_replaced)
            add_key(f, a->word, a->value);
    }
    for (uint32_t i = 0; i < w->n_given; i++)
        if (!w->given[i].pci[0] && !is_used[i])
            add_key(f, w->given[i].key, w->given[i].value);
}

/* Is a device of that name in the argument, of the user or of a preset? */
static bool names_device(const char *arg, const char *name)
{
    size_t n = strlen(name);

    arg += strncmp(arg, "--vdev=", 7) == 0 ? 7 : 0;
    return strncmp(arg, name, n) == 0 && (arg[n] == '\0' || arg[n] == ',');
}

static bool is_taken(const struct request *w, const char *name)
{
    bool taken = false;

    for (int i = 1; i < w->out->argc; i++)
        taken |= names_device(w->out->words[i], name);
    for (int i = 0; i < w->argc; i++)
        taken |= names_device(w->argv[i], name);
    return taken;
}

/* Appends "OPTIONNAME,KEY=VALUE,...", with the user's keys, and the device that it makes. */
static int push_device(const struct request *w, const char *option, const char *name)
{
    struct nj_presets *out = w->out;
    char *word = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&word, &n);

    if (f) {
        fprintf(f, "%s%s", option, name);
        add_keys(f, w);
        if (fclose(f) != 0) {
            free(word);
            word = NULL;
        }
    }
    if (n >= ARG_MAX || out->n_devices == NJ_PRESET_DEVICES_MAX) {
        free(word);
        return n >= ARG_MAX
                   ? nj_set_error(w->why, w->why_bytes, "--preset: an argument would be too long")
                   : nj_set_error(w->why, w->why_bytes, "--preset: more than %u devices",
                                  NJ_PRESET_DEVICES_MAX);
    }
    struct nj_preset_device *d = &out->device[out->n_devices++];
    d->preset = w->preset;
    snprintf(d->name, sizeof d->name, "%s", name);
    return push(w, word);
}

/* "--vdev=net_tap0,...", with the first number that is free. */
static int push_vdev(const struct request *w)
{
    char name[NJ_PRESET_DEVICE_MAX];
    uint32_t i = 0;

    do
        snprintf(name, sizeof name, "%s%u", w->preset->vdev, i++);
    while (is_taken(w, name));
    return push_device(w, "--vdev=", name);
}

/* Appends "-a {pci}" for each address. With a virtual device, that is the port. */
static int push_pci(const struct request *w)
{
    for (uint32_t i = 0; i < w->n_given; i++) {
        const char *pci = w->given[i].pci;
        if (pci[0] && (push(w, strdup("-a")) != 0 ||
                       (w->preset->vdev ? push(w, strdup(pci)) : push_device(w, "", pci)) != 0))
            return -1;
    }
    return 0;
}

static bool has_word(const struct nj_presets *out, const char *word)
{
    for (int i = 1; i < out->argc; i++)
        if (strcmp(out->words[i], word) == 0)
            return true;
    return false;
}

/* Did the user set the memory of the EAL? */
static bool user_sets_memory(const struct request *w)
{
    for (int i = 0; i < w->argc; i++)
        if (strncmp(w->argv[i], "-m", 2) == 0 || strncmp(w->argv[i], "--socket-mem", 12) == 0)
            return true;
    return false;
}

/* Skips an argument that the user or another preset gave. */
static int push_plain(const struct request *w, const struct nj_preset_argument *a)
{
    if (has_word(w->out, a->word) || (strcmp(a->word, "-m") == 0 && user_sets_memory(w)))
        return 0;
    return push(w, strdup(a->word)) == 0 && (!a->value || push(w, strdup(a->value)) == 0) ? 0 : -1;
}

/* Append a line "preset NAME: ARGUMENTS". */
static bool append_summary(struct nj_presets *out, const char *name, int from)
{
    char *summary = NULL;
    size_t n;
    FILE *f = open_memstream(&summary, &n);

    if (!f)
        return false;
    fprintf(f, "%s%spreset %s:", out->summary ? out->summary : "", out->summary ? "\n" : "", name);
    for (int i = from; i < out->argc; i++)
        fprintf(f, " %s", out->words[i]);
    free(out->summary);
    out->summary = fclose(f) == 0 ? summary : NULL;
    return out->summary;
}

static int expand_one(struct request *w, char *text)
{
    int from = w->out->argc;

    w->n_given = 0;
    if (!text)
        return push(w, NULL);
    if (parse_request(w, text) != 0)
        return -1;
    for (const struct nj_preset_argument *a = w->preset->arguments; a->word; a++)
        if (push_plain(w, a) != 0)
            return -1;
    if (push_pci(w) != 0 || (w->preset->vdev && push_vdev(w) != 0))
        return -1;
    return append_summary(w->out, w->preset->name, from) ? 0 : push(w, NULL);
}

/* The value of the --preset at argv[*i], or NULL. Advances *i to its last word. */
static const char *preset_at(int argc, char **argv, int *i)
{
    if (strncmp(argv[*i], "--preset=", 9) == 0)
        return argv[*i] + 9;
    if (strcmp(argv[*i], "--preset") != 0)
        return NULL;
    return *i + 1 < argc && strcmp(argv[*i + 1], "--") != 0 ? argv[++*i] : "";
}

/* A preset with --no-pci would disable the bus of another preset's NIC. */
static int check_compatible(const struct nj_presets *p, char *why, size_t n)
{
    const struct nj_preset *with = NULL, *without = NULL;

    for (uint32_t i = 0; i < p->n_devices; i++) {
        const struct nj_preset *preset = p->device[i].preset;
        *(strstr(preset->text, "\n--no-pci\n") ? &without : &with) = preset;
    }
    if (!with || !without || !has_word(p, "-a"))
        return 0;
    return nj_set_error(why, n,
                        "--preset %s and --preset %s do not go together: the first has --no-pci",
                        without->name, with->name);
}

int nj_presets_expand_eal_args(struct nj_presets *out, int argc, char **argv, char *why, size_t n)
{
    struct request w = {.out = out, .argc = argc, .argv = argv, .why = why, .why_bytes = n};
    bool ended = false;
    int rc = 0;

    *out = (struct nj_presets){.argc = 0};
    for (int i = 0; i < argc && rc == 0; i++) {
        ended = ended || strcmp(argv[i], "--") == 0;
        const char *preset = ended || i == 0 ? NULL : preset_at(argc, argv, &i);
        if (preset && !*preset)
            return nj_set_error(why, n, "--preset: expected a name; --preset list shows them");
        char *copy = strdup(preset ? preset : argv[i]);
        rc = preset ? expand_one(&w, copy) : push(&w, copy);
        if (preset)
            free(copy);
    }
    out->argv = calloc((size_t)out->argc + 1, sizeof *out->argv);
    if (rc == 0 && !out->argv)
        return push(&w, NULL);
    if (rc == 0 && out->argc > 0)
        memcpy(out->argv, out->words, (size_t)out->argc * sizeof *out->argv);
    return rc == 0 ? check_compatible(out, why, n) : -1;
}

void nj_presets_free(struct nj_presets *p)
{
    for (int i = 0; i < p->argc; i++)
        free(p->words[i]);
    free(p->words);
    free(p->argv);
    free(p->summary);
    *p = (struct nj_presets){.argc = 0};
}

/* --- --preset list, --preset NAME,help, --print-preset ---------------------------------------- */

static int list(void)
{
    for (const struct nj_preset *p = nj_preset_table; p->name; p++)
        printf("%-12s %s\n", p->name, p->title);
    puts("\nnightjar --preset NAME,help        show what it needs, expects and cannot do");
    puts("nightjar --print-preset NAME,...   print its EAL arguments and exit");
    return 0;
}

int nj_print_preset(const char *name_and_keys)
{
    const char *preset =
        name_and_keys ? name_and_keys : ""; /* an error that names those there are */
    char program[] = "nightjar", option[] = "--preset";
    char *argv[] = {program, option, (char *)(uintptr_t)preset}; /* it is only read */
    struct nj_presets p = {.argc = 0};
    char name[256], why[512];
    size_t n_name = strcspn(preset, ",");
    int rc;

    if (strcmp(preset, "list") == 0 || strcmp(preset, "help") == 0)
        return list();
    if (strcmp(preset + n_name, ",help") == 0) {
        snprintf(name, sizeof name, "%.*s", (int)n_name, preset);
        const struct nj_preset *asked = find_preset(name, why, sizeof why);
        rc = asked ? fputs(asked->text, stdout) : -1;
    } else {
        rc = nj_presets_expand_eal_args(&p, 3, argv, why, sizeof why);
        for (int i = 1; rc == 0 && i < p.argc; i++)
            printf("%s%s", p.argv[i], i + 1 < p.argc ? " " : "\n");
    }
    if (rc < 0)
        nj_log(NJ_LEVEL_ERROR, "%s", why);
    nj_presets_free(&p);
    return rc < 0 ? NJ_EXIT_USAGE : 0;
}
