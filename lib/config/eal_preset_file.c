/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses a preset file of drivers-config into its facts and its argument lines. The format is
 * described in eal_preset_file.h. */
#include "config/eal_preset_file.h"

#include <stdio.h>

#include "base/compiler.h"
#include "base/set_error.h"
#include "config/policy_file.h"

#define KEYS_MAX 24u
#define KEY_MAX  32u

bool nj_preset_word_list_contains(struct nj_str words, struct nj_str word)
{
    struct nj_str w;

    while (nj_str_next_word(&words, &w))
        if (nj_str_eq(w, word))
            return true;
    return false;
}

static bool next_line(const char **at, struct nj_str *line)
{
    const char *end = strchrnul(*at, '\n');

    *line = (struct nj_str){*at, (uint32_t)(end - *at)};
    bool is = **at;
    *at = *end ? end + 1 : end;
    return is;
}

bool nj_preset_next_arg_line(const char **at, struct nj_str *line)
{
    while (next_line(at, line)) {
        struct nj_str rest = *line, word;
        if (nj_str_next_word(&rest, &word) && *word.p != '#')
            return true;
    }
    return false;
}

/* --- keys ------------------------------------------------------------------------------------- */

/* Removes "..." at the end of a word such as "pci...". */
static bool strip_ellipsis(struct nj_str *key)
{
    bool has = key->n_bytes > 3 && memcmp(key->p + key->n_bytes - 3, "...", 3) == 0;

    key->n_bytes -= has ? 3 : 0;
    return has;
}

enum nj_preset_key_kind nj_preset_key_allowed_times(const struct nj_preset *p, struct nj_str key)
{
    struct nj_str lists[] = {p->needs, p->takes}, word;

    for (size_t i = 0; i < NJ_ARRAY_LEN(lists); i++)
        while (nj_str_next_word(&lists[i], &word)) {
            bool often = strip_ellipsis(&word);
            if (nj_str_eq(word, key))
                return often ? NJ_KEY_REPEATABLE : NJ_KEY_ONCE;
        }
    return NJ_KEY_UNKNOWN;
}

struct keys {
    char name[KEYS_MAX][KEY_MAX];
    uint32_t n;
};

static const char *key_at(void *ctx, uint32_t i)
{
    struct keys *k = ctx;
    return i < k->n ? k->name[i] : NULL;
}

bool nj_preset_closest_key(const struct nj_preset *p, struct nj_str key, char *near, size_t n)
{
    struct nj_str lists[] = {p->needs, p->takes}, word;
    struct keys keys = {.n = 0};
    char wanted[KEY_MAX];

    for (size_t i = 0; i < NJ_ARRAY_LEN(lists); i++)
        while (keys.n < KEYS_MAX && nj_str_next_word(&lists[i], &word)) {
            strip_ellipsis(&word);
            snprintf(keys.name[keys.n++], KEY_MAX, "%.*s", (int)word.n_bytes, word.p);
        }
    snprintf(wanted, sizeof wanted, "%.*s", (int)key.n_bytes, key.p);
    const char *found = nj__policy_closest_name(wanted, key_at, &keys);
    snprintf(near, n, "%s", found ? found : "");
    return found;
}

/* --- list of files ---------------------------------------------------------------------------- */

const struct nj_preset_file *nj_preset_find(struct nj_str name)
{
    for (const struct nj_preset_file *f = nj_preset_files; f->name; f++)
        if (strlen(f->name) == name.n_bytes && memcmp(f->name, name.p, name.n_bytes) == 0)
            return f;
    return NULL;
}

static const char *name_at(void *ctx, uint32_t i)
{
    (void)ctx;
    return nj_preset_files[i].name;
}

const char *nj_preset_closest(struct nj_str name)
{
    char wanted[KEY_MAX];

    snprintf(wanted, sizeof wanted, "%.*s", (int)name.n_bytes, name.p);
    return nj__policy_closest_name(wanted, name_at, NULL);
}

/* --- facts ------------------------------------------------------------------------------------ */

/* State of the parser. */
struct parse_state {
    struct nj_preset *p;
    struct nj_str queues, offloads, rss;
    uint32_t line;
    char *why;
    size_t n;
};

static int parse_error(const struct parse_state *r, const char *what, struct nj_str word)
{
    return nj_set_error(r->why, r->n, "%s.args:%u: %s \"%.*s\"", r->p->file->name, r->line, what,
                        (int)word.n_bytes, word.p);
}

/* Parses "KEY VALUE" of a line "#: KEY VALUE". */
static int parse_fact(struct parse_state *r, struct nj_str rest)
{
    const struct {
        const char *key;
        struct nj_str *at;
    } facts[] = {
        {"driver", &r->p->driver},  {"bind", &r->p->bind},   {"queues", &r->queues},
        {"offloads", &r->offloads}, {"rss", &r->rss},        {"needs", &r->p->needs},
        {"takes", &r->p->takes},    {"tried", &r->p->tried}, {"source", &r->p->source},
    };
    struct nj_str key, word, all = rest;

    if (!nj_str_next_word(&rest, &key))
        return parse_error(r, "expected a fact behind", NJ_STR("#:"));
    struct nj_str value = rest;
    if (!nj_str_next_word(&value, &word))
        return parse_error(r, "expected a value behind", key);
    for (size_t i = 0; i < NJ_ARRAY_LEN(facts); i++) {
        if (strlen(facts[i].key) != key.n_bytes || memcmp(facts[i].key, key.p, key.n_bytes) != 0)
            continue;
        if (facts[i].at->p)
            return parse_error(r, "said twice:", key);
        *facts[i].at = (struct nj_str){word.p, (uint32_t)(all.p + all.n_bytes - word.p)};
        return 0;
    }
    return parse_error(r, "there is no fact", key);
}

static int parse_line(struct parse_state *r, struct nj_str line)
{
    if (line.n_bytes >= 2 && memcmp(line.p, "#:", 2) == 0)
        return parse_fact(r, (struct nj_str){line.p + 2, line.n_bytes - 2});
    if (line.n_bytes > 2 && *line.p == '#' && !r->p->title.p)
        r->p->title = (struct nj_str){line.p + 2, line.n_bytes - 2};
    return 0;
}

static int read_queues(struct parse_state *r)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < r->queues.n_bytes; i++) {
        char c = r->queues.p[i];
        if (c < '0' || c > '9' || n > 1000)
            return parse_error(r, "queues: expected a number, not", r->queues);
        n = n * 10 + (uint32_t)(c - '0');
    }
    r->p->queues = n;
    return n > 0 ? 0 : parse_error(r, "queues: expected a number from 1, not", r->queues);
}

static int read_offloads(struct parse_state *r)
{
    static const struct {
        struct nj_str name;
        uint32_t bit;
    } offloads[] = {{NJ_STR_INIT("rx-checksum"), NJ_PRESET_RX_CHECKSUM},
                    {NJ_STR_INIT("tx-checksum"), NJ_PRESET_TX_CHECKSUM},
                    {NJ_STR_INIT("tso"), NJ_PRESET_TSO}};
    struct nj_str rest = r->offloads, word;

    r->p->offloads_optional = nj_str_eq(rest, NJ_STR("any")) ? NJ_PRESET_OFFLOADS : 0;
    if (r->p->offloads_optional || nj_str_eq(rest, NJ_STR("none")))
        return 0;
    while (nj_str_next_word(&rest, &word)) {
        bool open = word.p[word.n_bytes - 1] == '?';
        struct nj_str name = {word.p, word.n_bytes - open};
        uint32_t bit = 0;
        for (size_t i = 0; i < NJ_ARRAY_LEN(offloads); i++)
            bit |= nj_str_eq(offloads[i].name, name) ? offloads[i].bit : 0;
        if (!bit)
            return parse_error(r, "there is no offload", word);
        *(open ? &r->p->offloads_optional : &r->p->offloads) |= bit;
    }
    return 0;
}

static int read_rss(struct parse_state *r)
{
    static const struct nj_str words[] = {[NJ_PRESET_RSS_ANY] = NJ_STR_INIT("any"),
                                          [NJ_PRESET_RSS_DEVICE] = NJ_STR_INIT("device"),
                                          [NJ_PRESET_RSS_RINGS] = NJ_STR_INIT("rings")};

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(words); i++)
        if (nj_str_eq(words[i], r->rss)) {
            r->p->rss = (enum nj_preset_rss)i;
            return 0;
        }
    return parse_error(r, "rss: expected device, rings or any, not", r->rss);
}

static int check_complete(const struct parse_state *r)
{
    const struct nj_preset *p = r->p;
    const struct {
        const char *key;
        struct nj_str value;
    } needed[] = {{"title", p->title},   {"driver", p->driver},     {"bind", p->bind},
                  {"queues", r->queues}, {"offloads", r->offloads}, {"rss", r->rss},
                  {"tried", p->tried},   {"source", p->source}};
    const char *at = p->file->text;
    struct nj_str line;

    for (size_t i = 0; i < NJ_ARRAY_LEN(needed); i++)
        if (!needed[i].value.p)
            return nj_set_error(r->why, r->n, "%s.args: no %s", p->file->name, needed[i].key);
    if (!nj_preset_next_arg_line(&at, &line))
        return nj_set_error(r->why, r->n, "%s.args: no arguments", p->file->name);
    return 0;
}

int nj_preset_parse(const struct nj_preset_file *file, struct nj_preset *out, char *why, size_t n)
{
    struct parse_state r = {.p = out, .why = why, .n = n};
    const char *at = file->text;
    struct nj_str line;

    *out = (struct nj_preset){.file = file};
    while (next_line(&at, &line)) {
        r.line++;
        if (parse_line(&r, line) != 0)
            return -1;
    }
    if (check_complete(&r) != 0)
        return -1;
    return read_queues(&r) == 0 && read_offloads(&r) == 0 && read_rss(&r) == 0 ? 0 : -1;
}
