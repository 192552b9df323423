/* SPDX-License-Identifier: BSD-3-Clause */
#include "handler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/units.h"
#include "conn/conn.h"
#include "http/handlers/exchange_state.h"
#include "shard/shard.h"

#define COLD_BYTES  (64u << 20)
#define PIECE_BYTES 4096u /* of a body, per read */

/* ---- memory ---- */

/* Reads and writes a word of each cache line. */
static void touch(struct handler *h, uint8_t *from)
{
    for (uint32_t i = 0; i < h->options.n_bytes; i += NJ_CACHE_LINE) {
        uint64_t *word = (uint64_t *)(from + i);
        h->sum += *word;
        *word = h->sum;
    }
}

/* Index of the request's connection in the server's pool. */
static uint32_t conn_index(const struct handler *h, struct nj_request *req)
{
    const struct nj_exchange *x = nj__exchange_of_req(req);
    return nj_pool_index(&h->server->conns.active_pool,
                         nj_container_of(x->conn, struct nj_conn_active, conn));
}

static uint8_t *memory_of(struct handler *h, struct nj_request *req)
{
    uint64_t at = 0;

    if (h->options.touches == HANDLER_CONN)
        at = conn_index(h, req);
    if (h->options.touches == HANDLER_COLD)
        at = h->n_done++;
    return h->memory + at * h->options.n_bytes % h->n_memory;
}

static void answer(struct handler *h, struct nj_response *resp)
{
    nj_response_header(resp, "content-type", "application/octet-stream");
    nj_response_write(resp, h->answer, h->n_answer);
}

static void touch_and_answer(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct handler *h = arg;

    if (h->memory)
        touch(h, memory_of(h, req));
    answer(h, resp);
}

/* ---- bodies ---- */

/* Reads the part of the body that has arrived. True: the body is complete. */
static bool read_body(struct handler *h, struct nj_request *req)
{
    uint64_t piece[PIECE_BYTES / sizeof(uint64_t)];
    int64_t n;

    while ((n = nj_request_read(req, piece, sizeof piece)) > 0)
        for (int64_t i = 0; i < n / (int64_t)sizeof *piece; i++)
            h->sum += piece[i];
    return n == 0;
}

static void on_body(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct handler *h = arg;

    if (!read_body(h, req))
        return;
    answer(h, resp);
    nj_response_end(resp);
}

static void read_and_answer(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct handler *h = arg;

    if (read_body(h, req)) {
        answer(h, resp);
        return;
    }
    nj_response_defer(resp);
    nj_request_on_body(req, on_body, h);
}

/* ---- setup ---- */

bool handler_read(struct handler_options *o, const char *text)
{
    static const char *const kinds[] = {
        [HANDLER_SHARED] = "shared:",
        [HANDLER_CONN] = "conn:",
        [HANDLER_COLD] = "cold:",
        [HANDLER_BODY] = "body:",
    };
    uint64_t n;

    o->touches = HANDLER_PLAIN;
    o->n_bytes = 0;
    if (strcmp(text, "plain") == 0)
        return true;
    for (uint32_t i = HANDLER_SHARED; i < NJ_ARRAY_LEN(kinds); i++) {
        size_t n_kind = strlen(kinds[i]);
        if (strncmp(text, kinds[i], n_kind) != 0)
            continue;
        o->touches = (enum handler_touches)i;
        if (!nj_parse_bytes(text + n_kind, &n) || n == 0 || n > HANDLER_BYTES_MAX)
            return false;
        o->n_bytes = (uint32_t)n;
        return n % NJ_CACHE_LINE == 0;
    }
    return false;
}

/* Bytes of memory that requests of this kind access. */
static uint64_t memory_bytes(const struct handler_options *o, uint32_t n_conns)
{
    switch (o->touches) {
    case HANDLER_SHARED:
        return o->n_bytes;
    case HANDLER_CONN:
        return (uint64_t)o->n_bytes * n_conns;
    case HANDLER_COLD:
        return COLD_BYTES;
    case HANDLER_ABSENT:
    case HANDLER_PLAIN:
    case HANDLER_BODY:
        break;
    }
    return 0;
}

bool handler_init(struct handler *h, const struct handler_options *o, uint32_t n_conns,
                  const char *path, const uint8_t *bytes, uint32_t n_bytes)
{
    char why[160];

    *h = (struct handler){.options = *o, .answer = bytes, .n_answer = n_bytes};
    if (o->touches == HANDLER_ABSENT)
        return true;
    h->n_memory = memory_bytes(o, n_conns);
    if (h->n_memory > 0) {
        h->memory = aligned_alloc(NJ_CACHE_LINE, h->n_memory);
        if (!h->memory)
            return false;
        memset(h->memory, 1, h->n_memory); /* maps each page to memory of its own */
    }
    h->route = (struct nj_route){
        .path = path,
        .type = o->blocking ? NJ_BLOCKING : NJ_NON_BLOCKING,
        .handle = o->touches == HANDLER_BODY ? read_and_answer : touch_and_answer,
        .arg = h,
        .pin_to_lcore = true,
    };
    h->routes = nj_routes_new(&h->route, 1, why, sizeof why);
    return h->routes != NULL;
}

void handler_fini(struct handler *h)
{
    nj_routes_free(h->routes);
    free(h->memory);
}

uint32_t handler_upload(const struct handler *h)
{
    return h->options.touches == HANDLER_BODY ? h->options.n_bytes : 0;
}
