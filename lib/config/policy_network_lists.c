/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the networks of [list NAME] sections, of list files, and of trusted proxies. Addresses are
 * in the text form of RFC 4291 2.2 and 2.3. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "config/policy_file.h"
#include "log/address_text.h"

#define WANTS "an address or a network, e.g. 192.0.2.0/24 or 2001:db8::/32"

/* `at`: where the word stands. */
static void add_network(struct nj__policy_reader *r, uint32_t list, struct nj_str word,
                        const struct nj_ini_entry *at)
{
    struct nj_policy_file *f = r->f;
    struct nj_network net = {.lists = (uint16_t)(1u << list)};
    char text[NJ_NETWORK_TEXT_BYTES];
    unsigned bits;
    int shown = (int)nj_min_u32(word.n_bytes, 60);

    if (!nj_prefix_parse(word.p, word.n_bytes, &net.addr, &bits)) {
        nj_diag_at(r->faults, at, "%.*s: expected " WANTS, shown, word.p);
        return;
    }
    net.bits = (uint8_t)(nj_addr_is_v4(&net.addr) ? 96 + bits : bits);
    struct nj_addr network = nj_addr_network(&net.addr, net.bits);
    if (!nj_addr_eq(&network, &net.addr))
        nj_diag_at(r->faults, at, "%.*s: bits after the prefix are set: expected %s", shown, word.p,
                   nj_network_text(&network, net.bits, text));
    else if (f->n_networks == NJ_NETWORKS_MAX)
        nj_diag_at(r->faults, at, "too many networks: expected at most %u in all lists",
                   NJ_NETWORKS_MAX);
    else if (!nj_grow((void **)&f->network, f->n_networks, sizeof net))
        nj_diag_add(r->faults, r->path, 0, "out of memory");
    else
        f->network[f->n_networks++] = net;
}

void nj__policy_add_networks(struct nj__policy_reader *r, uint32_t list,
                             const struct nj_ini_entry *e)
{
    const char *text = e->value;
    struct nj_str word;

    while (text) {
        if (nj__policy_next_list_item(&text, &word))
            add_network(r, list, word, e);
        else
            nj_diag_at(r->faults, e, "empty item between commas: expected " WANTS);
    }
}

void nj__policy_add_trusted_proxies(struct nj__policy_reader *r, const struct nj_ini_entry *e)
{
    struct nj_policy_file *f = r->f;

    if (f->n_lists == NJ_LISTS_MAX) {
        nj_diag_at(r->faults, e, "trusted proxies count as a list: expected at most %u other lists",
                   NJ_LISTS_MAX - 1);
        return;
    }
    f->trusted = 1u << f->n_lists;
    f->list_used |= f->trusted;
    nj__policy_add_networks(r, f->n_lists, e);
}

/* One network per line. '#' and ';' begin a comment, the latter in Spamhaus's lists. */
static void parse_list_line(struct nj__policy_reader *r, uint32_t list, struct nj_str line,
                            const struct nj_ini_entry *at)
{
    struct nj_str before_hash, word;

    nj_str_cut(&line, '#', &before_hash);
    nj_str_cut(&before_hash, ';', &word);
    word = nj_ini_trim(word);
    if (word.n_bytes > 0)
        add_network(r, list, word, at);
}

void nj__policy_load_list(struct nj__policy_reader *r, uint32_t list, const struct nj_ini_entry *e)
{
    size_t n_bytes;
    uint32_t n_before = r->faults->n;

    if (r->f->n_list_files == NJ_LIST_FILES_MAX) {
        nj_diag_at(r->faults, e, "file: expected at most %u files in all lists", NJ_LIST_FILES_MAX);
        return;
    }
    char *path = nj_ini_path_beside(e->file, e->value);
    if (!path) {
        nj_diag_at(r->faults, e, "file: out of memory");
        return;
    }
    r->f->list_file[r->f->n_list_files++] = path;
    char *text = nj_read_text_file(path, NJ_LIST_BYTES_MAX, &n_bytes, r->faults);
    struct nj_ini_entry at = {.file = path};
    struct nj_str rest = {text, text ? (uint32_t)n_bytes : 0}, line;
    while (rest.n_bytes > 0) {
        nj_str_cut(&rest, '\n', &line);
        at.line++;
        parse_list_line(r, list, line, &at);
    }
    free(text);
    if (r->faults->n > n_before)
        nj_diag_at(r->faults, e, "file = %s: has errors (listed above)", e->value);
}
