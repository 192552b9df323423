/* SPDX-License-Identifier: BSD-3-Clause */
/* Expands --preset NAME,KEY=VALUE,... into EAL arguments, and implements --preset list, --preset
 * NAME,help and --print-preset. The files are in drivers-config. */
#include "config/eal_preset.h"

#include <stdio.h>
#include <stdlib.h>

#include <nightjar/server.h>

#include "base/compiler.h"
#include "base/set_error.h"
#include "config/settings_validate.h"
#include "dpdk/compat.h"
#include "log/log.h"
#include "topo/pci_driver.h"

#define KEYS_MAX 32u   /* of one --preset */
#define ARG_MAX  1024u /* bytes of one argument */
#define PCI      NJ_STR("{pci}")

struct given {
    struct nj_str key, value;
    char pci[24]; /* if the key is pci: DOMAIN:BUS:DEVICE.FUNCTION */
};

/* One --preset. */
struct preset_request {
    struct nj_preset preset;
    struct given given[KEYS_MAX];
    uint32_t n_given;
};

/* --- argument buffer -------------------------------------------------------------------------- */

struct arg {
    char text[ARG_MAX];
    size_t n; /* ARG_MAX: truncated */
};

static NJ_PRINTF(2, 3) void add(struct arg *a, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    int n = vsnprintf(a->text + a->n, ARG_MAX - a->n, format, ap);
    va_end(ap);
    a->n = n < 0 || (size_t)n >= ARG_MAX - a->n ? ARG_MAX : a->n + (size_t)n;
}

static int push(struct nj_presets *out, const struct arg *a, char *why, size_t n)
{
    char *copy = a->n < ARG_MAX ? strdup(a->text) : NULL;

    if (!copy)
        return nj_set_error(why, n, "--preset: %s",
                            a->n < ARG_MAX ? "out of memory" : "an argument would be too long");
    out->argv[out->argc++] = out->owned[out->n_owned++] = copy;
    return 0;
}

static int push_word(struct nj_presets *out, struct nj_str word, char *why, size_t n)
{
    struct arg a = {.n = 0};

    add(&a, "%.*s", (int)word.n_bytes, word.p);
    return push(out, &a, why, n);
}

/* --- NAME,KEY=VALUE --------------------------------------------------------------------------- */

static bool read_pci(struct nj_str text, char *out, size_t n)
{
    char address[24];
    int n_text = snprintf(address, sizeof address, "%.*s", (int)text.n_bytes, text.p);

    /* sscanf() would accept white space, signs and 0x */
    return !address[strspn(address, "0123456789abcdefABCDEF:.")] &&
           nj_pci_parse_address(address, out, n) == (size_t)n_text;
}

static int unknown_key(const struct nj_preset *p, struct nj_str key, char *why, size_t n)
{
    char near[32];
    bool has_near = nj_preset_closest_key(p, key, near, sizeof near);

    if (!p->needs.p && !p->takes.p)
        return nj_set_error(why, n, "--preset %s: it takes no keys", p->file->name);
    return nj_set_error(why, n,
                        "--preset %s: there is no key \"%.*s\"%s%s%s (--preset %s,help shows all)",
                        p->file->name, (int)key.n_bytes, key.p, has_near ? ": did you mean " : "",
                        has_near ? near : "", has_near ? "?" : "", p->file->name);
}

static bool was_given(const struct preset_request *w, struct nj_str key)
{
    for (uint32_t i = 0; i < w->n_given; i++)
        if (nj_str_eq(w->given[i].key, key))
            return true;
    return false;
}

static int parse_key_value(struct preset_request *w, struct nj_str item, char *why, size_t n)
{
    const char *name = w->preset.file->name;
    const char *equal = memchr(item.p, '=', item.n_bytes);
    uint32_t n_key = equal ? (uint32_t)(equal - item.p) : item.n_bytes;
    struct given g = {.key = {item.p, n_key}};

    if (!equal || n_key + 1 >= item.n_bytes)
        return nj_set_error(why, n, "--preset %s: expected KEY=VALUE, not \"%.*s\"", name,
                            (int)item.n_bytes, item.p);
    g.value = (struct nj_str){equal + 1, item.n_bytes - n_key - 1};
    enum nj_preset_key_kind kind = nj_preset_key_allowed_times(&w->preset, g.key);
    if (kind == NJ_KEY_UNKNOWN)
        return unknown_key(&w->preset, g.key, why, n);
    if (kind == NJ_KEY_ONCE && was_given(w, g.key))
        return nj_set_error(why, n, "--preset %s: %.*s= was given twice", name, (int)n_key, item.p);
    if (nj_str_eq(g.key, NJ_STR("pci")) && !read_pci(g.value, g.pci, sizeof g.pci))
        return nj_set_error(
            why, n,
            "--preset %s: pci=%.*s: expected an address such as 0000:03:00.0 or 03:00.0 "
            "(lspci -D lists them)",
            name, (int)g.value.n_bytes, g.value.p);
    for (uint32_t i = 0; g.pci[0] && i < w->n_given; i++)
        if (strcmp(w->given[i].pci, g.pci) == 0)
            return nj_set_error(why, n, "--preset %s: pci=%s was given twice", name, g.pci);
    if (w->n_given == KEYS_MAX)
        return nj_set_error(why, n, "--preset %s: more than %u keys", name, KEYS_MAX);
    w->given[w->n_given++] = g;
    return 0;
}

static int check_needs(const struct preset_request *w, char *why, size_t n)
{
    struct nj_str needs = w->preset.needs, word, first = {.p = NULL};

    while (nj_str_next_word(&needs, &word)) {
        if (word.n_bytes > 3 && memcmp(word.p + word.n_bytes - 3, "...", 3) == 0)
            word.n_bytes -= 3;
        if (was_given(w, word))
            return 0;
        first = first.p ? first : word;
    }
    if (!first.p)
        return 0;
    bool pci = nj_str_eq(first, NJ_STR("pci"));
    return nj_set_error(why, n, "--preset %s: %.*s= is missing%s", w->preset.file->name,
                        (int)first.n_bytes, first.p,
                        pci ? ": an address such as 0000:03:00.0 (lspci -D lists them)" : "");
}

/* Finds the preset of "NAME,KEY=VALUE,..."; *rest is set to the comma or the end. */
static int find_preset(const char *text, const char **rest, const struct nj_preset_file **file,
                       char *why, size_t n)
{
    struct nj_str name = {text, (uint32_t)strcspn(text, ",")};
    const char *near = nj_preset_closest(name);

    *rest = text + name.n_bytes;
    *file = nj_preset_find(name);
    if (*file)
        return 0;
    return nj_set_error(
        why, n, "--preset %.*s: there is no such preset%s%s%s (--preset list shows all)",
        (int)name.n_bytes, text, near ? ": did you mean " : "", near ? near : "", near ? "?" : "");
}

static int parse_request(const char *text, struct preset_request *w, char *why, size_t n)
{
    const struct nj_preset_file *file;

    w->n_given = 0;
    if (find_preset(text, &text, &file, why, n) != 0 ||
        nj_preset_parse(file, &w->preset, why, n) != 0)
        return -1;
    while (*text) {
        struct nj_str item = {text + 1, (uint32_t)strcspn(text + 1, ",")};
        if (parse_key_value(w, item, why, n) != 0)
            return -1;
        text = item.p + item.n_bytes;
    }
    return check_needs(w, why, n);
}

/* --- the arguments of the file ---------------------------------------------------------------- */

static bool begins(struct nj_str s, const char *with)
{
    size_t n = strlen(with);
    return s.n_bytes >= n && memcmp(s.p, with, n) == 0;
}

static bool has_pci(struct nj_str s)
{
    return memmem(s.p, s.n_bytes, PCI.p, PCI.n_bytes);
}

static bool has_vdev(const struct nj_preset *p)
{
    const char *at = p->file->text;
    struct nj_str line;

    while (nj_preset_next_arg_line(&at, &line))
        if (begins(line, "--vdev="))
            return true;
    return false;
}

static int record_device(struct nj_presets *out, const struct preset_request *w, const char *name,
                         char *why, size_t n)
{
    if (out->n_devices == NJ_PRESET_DEVICES_MAX)
        return nj_set_error(why, n, "--preset: more than %u devices", NJ_PRESET_DEVICES_MAX);
    struct nj_preset_device *d = &out->device[out->n_devices++];
    d->preset = w->preset;
    snprintf(d->name, sizeof d->name, "%s", name);
    return 0;
}

static void add_key(struct arg *a, struct nj_str key, struct nj_str value)
{
    if (nj_str_eq(key, NJ_STR("member")))
        key = (struct nj_str){NJ_BOND_MEMBER, sizeof NJ_BOND_MEMBER - 1};
    add(a, ",%.*s=%.*s", (int)key.n_bytes, key.p, (int)value.n_bytes, value.p);
}

/* Does the device in the file have that argument, with a value other than {pci}? */
static bool file_has_key(struct nj_str device, struct nj_str key)
{
    char item[64];

    snprintf(item, sizeof item, ",%.*s=", (int)key.n_bytes, key.p);
    const char *at = memmem(device.p, device.n_bytes, item, strlen(item));
    return at && strncmp(at + strlen(item), "{pci}", 5) != 0;
}

/* Append the keys that add_item() did not replace. */
static void add_remaining_keys(struct arg *a, const struct preset_request *w, struct nj_str device)
{
    for (uint32_t i = 0; i < w->n_given; i++)
        if (!w->given[i].pci[0] && !file_has_key(device, w->given[i].key))
            add_key(a, w->given[i].key, w->given[i].value);
}

/* Append "KEY=VALUE" of the file: unchanged, with the user's value, or once per PCI address. */
static void add_item(struct arg *a, const struct preset_request *w, struct nj_str item)
{
    const char *equal = memchr(item.p, '=', item.n_bytes);
    struct nj_str key = {item.p, equal ? (uint32_t)(equal - item.p) : item.n_bytes};
    bool replaced = has_pci(item);

    for (uint32_t i = 0; i < w->n_given; i++) {
        const struct given *g = &w->given[i];
        if (has_pci(item) && g->pci[0]) {
            add_key(a, key, (struct nj_str){g->pci, (uint32_t)strlen(g->pci)});
        } else if (!has_pci(item) && nj_str_eq(g->key, key)) {
            add_key(a, key, g->value);
            replaced = true;
        }
    }
    if (!replaced)
        add(a, ",%.*s", (int)item.n_bytes, item.p);
}

static bool names_device(const char *arg, const char *name)
{
    size_t n = strlen(name);

    arg += strncmp(arg, "--vdev=", 7) == 0 ? 7 : 0;
    return strncmp(arg, name, n) == 0 && (arg[n] == '\0' || arg[n] == ',');
}

/* Is a device of that name in the arguments so far, or in the user's? */
static bool is_taken(const struct nj_presets *out, const char *name)
{
    bool taken = false;

    for (int i = 1; i < out->argc; i++)
        taken = taken || names_device(out->argv[i], name);
    for (int i = 0; i < out->n_user; i++)
        taken = taken || names_device(out->user[i], name);
    return taken;
}

/* "net_tap0", with the first free number. */
static void name_vdev(const struct nj_presets *out, struct nj_str file_says, char *name, size_t n)
{
    uint32_t n_base = file_says.n_bytes, i = 0;

    while (n_base > 0 && file_says.p[n_base - 1] >= '0' && file_says.p[n_base - 1] <= '9')
        n_base--;
    do
        snprintf(name, n, "%.*s%u", (int)n_base, file_says.p, i++);
    while (is_taken(out, name));
}

static int push_vdev(struct nj_presets *out, const struct preset_request *w, struct nj_str text,
                     char *why, size_t n)
{
    char name[NJ_PRESET_DEVICE_MAX];
    struct arg a = {.n = 0};

    text = (struct nj_str){text.p + 7, text.n_bytes - 7};
    const char *comma = memchr(text.p, ',', text.n_bytes), *end = text.p + text.n_bytes;
    comma = comma ? comma : end;
    name_vdev(out, (struct nj_str){text.p, (uint32_t)(comma - text.p)}, name, sizeof name);
    add(&a, "--vdev=%s", name);
    for (const char *at = comma; at < end;) {
        const char *next = memchr(at + 1, ',', (size_t)(end - at - 1));
        next = next ? next : end;
        add_item(&a, w, (struct nj_str){at + 1, (uint32_t)(next - at - 1)});
        at = next;
    }
    add_remaining_keys(&a, w, text);
    return push(out, &a, why, n) == 0 ? record_device(out, w, name, why, n) : -1;
}

/* Append "-a {pci}" for each address. */
static int push_pci(struct nj_presets *out, const struct preset_request *w, char *why, size_t n)
{
    bool is_device = !has_vdev(&w->preset);

    for (uint32_t i = 0; i < w->n_given; i++) {
        const struct given *g = &w->given[i];
        struct arg a = {.n = 0};
        if (!g->pci[0])
            continue;
        add(&a, "%s", g->pci);
        if (is_device)
            add_remaining_keys(&a, w, (struct nj_str){"", 0});
        if (push_word(out, NJ_STR("-a"), why, n) != 0 || push(out, &a, why, n) != 0 ||
            (is_device && record_device(out, w, g->pci, why, n) != 0))
            return -1;
    }
    return 0;
}

static bool has_word(const struct nj_presets *out, struct nj_str word)
{
    for (int i = 1; i < out->argc; i++)
        if (strlen(out->argv[i]) == word.n_bytes && memcmp(out->argv[i], word.p, word.n_bytes) == 0)
            return true;
    return false;
}

/* Did the user set the memory of the EAL? */
static bool user_sets_memory(const struct nj_presets *out)
{
    bool has = false;

    for (int i = 0; i < out->n_user; i++)
        has = has || strncmp(out->user[i], "-m", 2) == 0 ||
              strncmp(out->user[i], "--socket-mem", 12) == 0;
    return has;
}

/* Skips arguments that the user or another preset gave. */
static int push_plain(struct nj_presets *out, struct nj_str line, char *why, size_t n)
{
    struct nj_str word;
    bool first = true;

    while (nj_str_next_word(&line, &word)) {
        if (first &&
            (has_word(out, word) || (nj_str_eq(word, NJ_STR("-m")) && user_sets_memory(out))))
            return 0;
        first = false;
        if (push_word(out, word, why, n) != 0)
            return -1;
    }
    return 0;
}

/* An upper bound of the arguments of one preset. */
static size_t max_arguments(const struct preset_request *w)
{
    const char *at = w->preset.file->text;
    struct nj_str line, word;
    size_t n_words = 0;

    while (nj_preset_next_arg_line(&at, &line))
        while (nj_str_next_word(&line, &word))
            n_words++;
    return n_words + 2 * (size_t)w->n_given;
}

static bool grow_argv(struct nj_presets *out, size_t n_more)
{
    char **argv = reallocarray(out->argv, (size_t)out->argc + n_more + 1, sizeof *argv);
    out->argv = argv ? argv : out->argv;
    char **owned = reallocarray(out->owned, out->n_owned + n_more + 1, sizeof *owned);
    out->owned = owned ? owned : out->owned;
    return argv && owned;
}

/* Append a line "preset NAME: ARGUMENTS". */
static bool append_summary(struct nj_presets *out, const struct preset_request *w, int from)
{
    char *summary = NULL;
    size_t n;
    FILE *f = open_memstream(&summary, &n);

    if (!f)
        return false;
    fprintf(f, "%s%spreset %s:", out->summary ? out->summary : "", out->summary ? "\n" : "",
            w->preset.file->name);
    for (int i = from; i < out->argc; i++)
        fprintf(f, " %s", out->argv[i]);
    if (fclose(f) != 0) {
        free(summary);
        return false;
    }
    free(out->summary);
    out->summary = summary;
    return true;
}

static int expand_one(struct nj_presets *out, const char *text, int n_rest, char *why, size_t n)
{
    struct preset_request w;
    struct nj_str line;
    int from = out->argc;

    if (parse_request(text, &w, why, n) != 0)
        return -1;
    if (!grow_argv(out, max_arguments(&w) + (size_t)n_rest))
        return nj_set_error(why, n, "out of memory");
    for (const char *at = w.preset.file->text; nj_preset_next_arg_line(&at, &line);) {
        int rc = begins(line, "--vdev=")                ? push_vdev(out, &w, line, why, n)
                 : begins(line, "-a ") && has_pci(line) ? push_pci(out, &w, why, n)
                                                        : push_plain(out, line, why, n);
        if (rc != 0)
            return -1;
    }
    return append_summary(out, &w, from) ? 0 : nj_set_error(why, n, "out of memory");
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
        const struct nj_preset *preset = &p->device[i].preset;
        *(strstr(preset->file->text, "\n--no-pci\n") ? &without : &with) = preset;
    }
    if (!with || !without || !has_word(p, NJ_STR("-a")))
        return 0;
    return nj_set_error(why, n,
                        "--preset %s and --preset %s do not go together: the first has --no-pci",
                        without->file->name, with->file->name);
}

int nj_presets_expand_eal_args(struct nj_presets *out, int argc, char **argv, char *why, size_t n)
{
    bool ended = false;

    *out = (struct nj_presets){.user = argv, .n_user = argc};
    if (!grow_argv(out, (size_t)argc))
        return nj_set_error(why, n, "out of memory");
    for (int i = 0; i < argc; i++) {
        ended = ended || strcmp(argv[i], "--") == 0;
        const char *preset = ended || i == 0 ? NULL : preset_at(argc, argv, &i);
        if (!preset)
            out->argv[out->argc++] = argv[i];
        else if (!*preset)
            return nj_set_error(why, n, "--preset: expected a name; --preset list shows them");
        else if (expand_one(out, preset, argc - i, why, n) != 0)
            return -1;
    }
    out->argv[out->argc] = NULL;
    return check_compatible(out, why, n);
}

void nj_presets_free(struct nj_presets *p)
{
    for (uint32_t i = 0; i < p->n_owned; i++)
        free(p->owned[i]);
    free(p->owned);
    free(p->argv);
    free(p->summary);
    free(p->file_text);
    *p = (struct nj_presets){.argc = 0};
}

const char *nj_presets_summary(const struct nj_presets *p)
{
    return p->summary;
}

/* --- --preset list, --preset NAME,help, --print-preset ---------------------------------------- */

static int list(void)
{
    for (const struct nj_preset_file *f = nj_preset_files; f->name; f++) {
        struct nj_preset p;
        char why[128];
        if (nj_preset_parse(f, &p, why, sizeof why) == 0)
            printf("%-12s %.*s\n", f->name, (int)p.title.n_bytes, p.title.p);
    }
    puts("\nnightjar --preset NAME,help        show what it needs, expects and cannot do");
    puts("nightjar --print-preset NAME,...   print its EAL arguments and exit");
    return 0;
}

static bool asks_for_help(const char *preset)
{
    const char *comma = strchr(preset, ',');
    return comma && strcmp(comma, ",help") == 0;
}

int nj_print_preset(const char *preset)
{
    char program[] = "nightjar", option[] = "--preset", *text = strdup(preset);
    char *argv[] = {program, option, text};
    const struct nj_preset_file *file;
    struct nj_presets p = {.argc = 0};
    char why[512];

    if (strcmp(preset, "list") == 0 || strcmp(preset, "help") == 0) {
        free(text);
        return list();
    }
    int rc = text ? 0 : nj_set_error(why, sizeof why, "out of memory");
    if (rc == 0 && asks_for_help(preset)) {
        rc = find_preset(preset, &preset, &file, why, sizeof why);
        if (rc == 0)
            fputs(file->text, stdout);
    } else if (rc == 0) {
        rc = nj_presets_expand_eal_args(&p, 3, argv, why, sizeof why);
        for (int i = 1; rc == 0 && i < p.argc; i++)
            printf("%s%s", p.argv[i], i + 1 < p.argc ? " " : "\n");
    }
    if (rc != 0)
        nj_log(NJ_LEVEL_ERROR, "%s", why);
    nj_presets_free(&p);
    free(text);
    return rc == 0 ? 0 : NJ_EXIT_USAGE;
}
