/* SPDX-License-Identifier: BSD-3-Clause */
/* `transfers`: requests whose response is not complete, the fastest first. `blocks`: networks that
 * are blocked. */
#include <stdlib.h>
#include <string.h>

#include "base/request_head.h"
#include "log/address_text.h"
#include "mgmt/answers.h"
#include "mgmt/blocks.h"
#include "mgmt/transfers.h"

#define SHOWN               100u
#define SHOWN_MAX           1000u
/* An answer of telemetry holds 16 KiB, and a transfer takes up to 600 bytes of it. */
#define SHOWN_TELEMETRY     10u
#define SHOWN_MAX_TELEMETRY 20u

/* --- transfers ------------------------------------------------------------------------------ */

/* "N", "client=NETWORK", or both. */
static bool read_params(const char *params, uint32_t n_max, struct nj_mgmt_transfers_filter *f)
{
    static const char by_client[] = "client=";
    char *end;

    if (!params)
        return true;
    if (*params >= '0' && *params <= '9') {
        unsigned long n = strtoul(params, &end, 10);
        f->n_shown = (uint32_t)n;
        if (n == 0 || n > n_max)
            return false;
        if (*end == '\0')
            return true;
        params = *end == ',' ? end + 1 : "";
    }
    if (strncmp(params, by_client, sizeof by_client - 1) != 0)
        return false;
    params += sizeof by_client - 1;
    return nj_mgmt_parse_network(params, strlen(params), &f->of) && nj_net_has(&f->of, &f->of.addr);
}

static void add_path(const struct nj_transfer *t, struct nj__doc one)
{
    char path[NJ_TRANSFER_PATH_BYTES + 4];

    if (t->n_path == 0)
        return;
    snprintf(path, sizeof path, "%.*s%s", t->n_path, t->path, t->is_path_cut ? "..." : "");
    nj__doc_text(one, "path", path);
}

static void add_transfer(const struct nj_mgmt_transfer *m, uint32_t number, struct nj__doc list)
{
    static const char *const method[] = {[NJ_METHOD_OTHER] = "other",
                                         [NJ_METHOD_GET] = "GET",
                                         [NJ_METHOD_HEAD] = "HEAD",
                                         [NJ_METHOD_OPTIONS] = "OPTIONS"};
    const struct nj_transfer *t = &m->of;
    char id[NJ_TRANSFER_ID_TEXT_BYTES], text[NJ_ADDRESS_TEXT_BYTES];
    struct nj__doc one = nj__doc_item(list, number);

    nj__doc_text(one, "id", nj_transfer_id_format(&t->id, id));
    nj__doc_text(one, "client", nj_address_text(&t->client, text));
    nj__doc_text(one, "remote", nj_address_text(&t->remote, text));
    nj__doc_uint(one, "port", t->rport);
    nj__doc_text(one, "protocol", t->is_h2 ? "h2" : "http/1");
    nj__doc_bool(one, "tls", t->is_tls);
    nj__doc_text(one, "method", method[t->method]);
    nj__doc_uint(one, "status", t->status);
    nj__doc_text(one, "class", t->class_of);
    add_path(t, one);
    nj__doc_uint(one, "bytes_done", t->n_done);
    if (t->n_left != NJ_BODY_LEN_UNKNOWN)
        nj__doc_uint(one, "bytes_left", t->n_left);
    nj__doc_uint(one, "bytes_per_s", m->bytes_per_s);
    nj__doc_bool(one, "is_average", m->is_average);
    nj__doc_uint(one, "age_ms", t->age / NJ_MS);
    nj__doc_uint(one, "throttled_ms", t->throttled / NJ_MS);
    nj__doc_text(one, "why", nj_why_name(t->why));
}

bool nj__answer_transfers(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    bool is_telemetry = nj__doc_is_telemetry(d);
    uint32_t n_max = is_telemetry ? SHOWN_MAX_TELEMETRY : SHOWN_MAX;
    struct nj_mgmt_transfers_filter f = {.n_shown = is_telemetry ? SHOWN_TELEMETRY : SHOWN};
    struct nj_mgmt_transfers_answer a = {0};

    if (!read_params(params, n_max, &f))
        return false;
    if (v->transfers && !nj_mgmt_transfers_list(v->transfers, &f, NJ_MGMT_WAIT_DEFAULT, &a))
        d.of->is_incomplete = true;
    nj__doc_uint(d, "running", a.n_found);
    nj__doc_uint(d, "lcores_missing", a.n_missing);
    struct nj__doc list = nj__doc_list(d, "transfers", "transfer");
    for (uint32_t i = 0; i < a.n; i++)
        add_transfer(&a.at[i], i, list);
    nj_mgmt_transfers_release(&a);
    return true;
}

/* --- blocks --------------------------------------------------------------------------------- */

bool nj__answer_blocks(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    struct nj_mgmt_block block[NJ_BLOCKS_MAX];
    char text[NJ_NETWORK_TEXT_BYTES];

    if (params)
        return false;
    uint32_t n = nj_mgmt_blocks(v, block);
    struct nj__doc list = nj__doc_list(d, "blocks", "block");
    for (uint32_t i = 0; i < n; i++) {
        struct nj__doc one = nj__doc_item(list, i);
        nj__doc_text(one, "network", nj_network_text(&block[i].net.addr, block[i].net.bits, text));
        if (block[i].seconds_left > 0)
            nj__doc_uint(one, "seconds_left", block[i].seconds_left);
    }
    return true;
}
