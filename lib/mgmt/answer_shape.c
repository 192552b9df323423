/* SPDX-License-Identifier: BSD-3-Clause */
/* `classes`, `clients`, `shaping`: counters and rates of classes, clients and pacing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/relaxed_atomics.h"
#include "log/address_text.h"
#include "mgmt/answers.h"
#include "mgmt/answer_parts.h"
#include "telem/counters_http.h"

#define CLIENTS_SHOWN          10u
/* An answer of telemetry holds 16 KiB, and a client takes about 230 bytes of it. The clients of
 * JSON are sorted into one array, of which each new client may move the rest. */
#define CLIENTS_SHOWN_MAX      64u
#define CLIENTS_SHOWN_MAX_JSON 1000u

/* --- classes ------------------------------------------------------------------------------- */

static void add_class(const struct nj_mgmt_view *v, const struct nj_class *c, struct nj__doc list)
{
    struct nj_mgmt_class_sum sum = nj_mgmt_sum_class(v, c->slot);
    struct nj__doc one = nj__doc_item(list, c->slot);
    const struct nj_class_rate *rate = &v->class_rate[c->slot];

    nj__doc_text(one, "name", c->name);
    nj__doc_uint(one, "requests", sum.requests);
    nj__doc_uint(one, "refused", sum.refused);
    nj__doc_uint(one, "open", sum.open);
    nj__doc_uint(one, "waiting", sum.waiting);
    nj__doc_uint(one, "bytes", sum.bytes);
    nj__doc_uint(one, "throttled_ms", sum.throttled_ns / NJ_MS);
    nj__doc_uint(one, "requests_per_s", nj_load_relaxed(&rate->requests_per_s));
    nj__doc_uint(one, "bytes_per_s", nj_load_relaxed(&rate->bytes_per_s));
}

/* Arguments of a callback that adds to a list, under the lock of the policy. */
struct list_ctx {
    const struct nj_mgmt_view *v;
    struct nj__doc list;
};

static void add_classes(void *ctx, const struct nj_policy *p)
{
    const struct list_ctx *a = ctx;

    for (uint32_t i = 0; i < p->n_classes; i++)
        add_class(a->v, &p->classes[i], a->list);
}

bool nj__answer_classes(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    struct list_ctx a = {v, nj__doc_list(d, "classes", "class")};

    if (!params)
        nj_policies_call_with_current(v->policies, add_classes, &a);
    return !params;
}

/* --- clients ------------------------------------------------------------------------------- */

/* A client's address or prefix in the policy's sense: 198.18.0.7, 2001:db8:0:1::/64. */
static void client_name(const struct nj_policy *p, const struct nj_client *c, char *to, size_t n)
{
    struct nj_addr addr = nj_client_addr(c);
    char text[NJ_NETWORK_TEXT_BYTES];
    unsigned bits = nj_addr_is_v4(&addr) ? 96u + p->client_bits4 : p->client_bits6;

    addr = nj_addr_network(&addr, bits);
    snprintf(to, n, "%s",
             bits == 128 ? nj_address_text(&addr, text) : nj_network_text(&addr, bits, text));
}

static void add_client(const struct list_ctx *a, const struct nj_policy *p,
                       const struct nj_client *c, uint32_t number)
{
    struct nj__doc one = nj__doc_item(a->list, number);
    char name[NJ_ADDRESS_TEXT_BYTES + 8] = "others", key[32];

    if (c != a->v->other_clients)
        client_name(p, c, name, sizeof name);
    nj__doc_text(one, "client", name);
    snprintf(key, sizeof key, "%016" PRIx64, nj_load_relaxed(&c->key));
    nj__doc_text(one, "key", key);
    nj__doc_uint(one, "connections", nj_load_relaxed(&c->n_conns));
    nj__doc_uint(one, "streams", nj_load_relaxed(&c->n_streams));
    nj__doc_uint(one, "requests", nj_load_relaxed(&c->n_requests));
    nj__doc_uint(one, "refused", nj_load_relaxed(&c->n_refused));
    nj__doc_uint(one, "bytes", nj_load_relaxed(&c->n_bytes));
    nj__doc_uint(one, "throttled_ms", nj_load_relaxed(&c->throttled_ns) / NJ_MS);
}

/* Parameters of `clients`. */
struct clients_query {
    struct list_ctx a;
    uint32_t n;
    enum nj_clients_by by;
};

static void add_clients(void *ctx, const struct nj_policy *p)
{
    const struct clients_query *c = ctx;
    const struct nj_client *top[CLIENTS_SHOWN_MAX_JSON];
    uint32_t n = nj_clients_top(c->a.v->clients, c->by, top, c->n);

    for (uint32_t i = 0; i < n; i++)
        add_client(&c->a, p, top[i], i);
}

/* "N", "by=WHAT", or both. */
static bool read_clients(const char *params, struct clients_query *c)
{
    bool is_json = !nj__doc_is_telemetry(c->a.list);
    static const char *const by[] = {[NJ_CLIENTS_BY_BYTES] = "by=bytes",
                                     [NJ_CLIENTS_BY_STREAMS] = "by=streams",
                                     [NJ_CLIENTS_BY_CONNECTIONS] = "by=connections"};
    char *end;

    if (!params)
        return true;
    if (*params >= '0' && *params <= '9') {
        unsigned long n = strtoul(params, &end, 10);
        c->n = (uint32_t)n;
        if (n == 0 || n > (is_json ? CLIENTS_SHOWN_MAX_JSON : CLIENTS_SHOWN_MAX))
            return false;
        if (*end == '\0')
            return true;
        params = *end == ',' ? end + 1 : "";
    }
    for (unsigned i = 0; i < NJ_ARRAY_LEN(by); i++) {
        c->by = (enum nj_clients_by)i;
        if (strcmp(params, by[i]) == 0)
            return true;
    }
    return false;
}

bool nj__answer_clients(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    struct list_ctx a = {v, nj__doc_list(d, "clients", "client")};
    struct clients_query c = {a, CLIENTS_SHOWN, NJ_CLIENTS_BY_BYTES};

    if (!read_clients(params, &c))
        return false;
    nj_policies_call_with_current(v->policies, add_clients, &c);
    return true;
}

/* --- pacing -------------------------------------------------------------------------------- */

bool nj__answer_shaping(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    static const nj_counter shown[] = {
        NJ_C_shape_responses, NJ_C_shape_waiting,       NJ_C_shape_timers, NJ_C_shape_clients,
        NJ_C_shape_bytes,     NJ_C_shape_throttled,     NJ_C_shape_wakes,  NJ_C_shape_wakes_empty,
        NJ_C_shape_leases,    NJ_C_shape_leases_waited,
    };
    uint64_t wakes = 0, empty = 0;
    uint32_t from, to;

    if (!nj__answer_parse_shards(v, params, &from, &to))
        return false;
    nj__answer_add_counters(v, from, to, shown, NJ_ARRAY_LEN(shown), d);
    for (uint32_t i = from; i < to; i++) {
        wakes += nj_counter_read(&v->shard[i]->counters, NJ_C_shape_wakes);
        empty += nj_counter_read(&v->shard[i]->counters, NJ_C_shape_wakes_empty);
    }
    nj__doc_uint(d, "wakes_empty_ppm", wakes > 0 ? empty * 1000000 / wakes : 0);
    return true;
}
