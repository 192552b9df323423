/* SPDX-License-Identifier: BSD-3-Clause */
/* The plan of a connection, drawn from the seed. */
#include <stdio.h>

#include "h1.h"
#include "sim.h"
#include "tls.h"

static const char *const kind_name[] = {"h2", "http/1", "garbage", "silent"};

/* Sizes near boundaries: frames, windows, send queues, chunks. */
static uint64_t draw_size(struct sim *sim)
{
    static const uint32_t edges[] = {0,      1,      2,      1447,   1448,  1449,
                                     16383,  16384,  16385,  65535,  65536, 65537,
                                     131072, 200000, 200000, 262144, 262145};
    struct nj_prng *p = &sim->client.prng;
    uint64_t size;

    switch (nj_prng_below(p, 8)) {
    case 0:
        size = nj_prng_below(p, 100000);
        break;
    case 1:
        size = 600000 + nj_prng_below(p, 2000000);
        break;
    default:
        size = edges[nj_prng_below(p, sizeof edges / sizeof edges[0])];
    }
    if (size > sim->mix.bytes_budget)
        size = nj_prng_below(p, 3000);
    sim->mix.bytes_budget -= (uint32_t)size < sim->mix.bytes_budget ? (uint32_t)size : 0;
    return size;
}

static void expect(struct sim_request *r, uint16_t status, const char *text)
{
    r->status = status;
    r->text = text;
    r->length = r->body_bytes = strlen(text);
}

static void name_file(struct sim_request *r, char kind, uint64_t size)
{
    r->file.kind = kind;
    r->file.size = size;
    snprintf(r->path, sizeof r->path, "/%c-%u-%lu", kind, r->file.id, (unsigned long)size);
}

/* Many readers of chunked files read the same file, so that READs hit chunks and share reads. */
static void be_popular(struct sim *sim, struct sim_request *r)
{
    struct sim_client *c = &sim->client;
    struct sim_name *popular = &c->popular;

    if (r->length >= popular->size) {
        *popular = r->file;
    } else if (popular->size <= sim->mix.bytes_budget && nj_prng_below(&c->again_prng, 3) > 0) {
        sim->mix.bytes_budget -= (uint32_t)popular->size;
        r->file.id = popular->id;
        r->length = r->body_bytes = popular->size;
        name_file(r, popular->kind, popular->size);
    }
}

static void plan_file(struct sim *sim, struct sim_request *r)
{
    struct nj_prng *p = &sim->client.prng;
    bool whole = nj_prng_below(p, 3) > 0;

    r->length = r->body_bytes = draw_size(sim);
    r->status = 200;
    name_file(r, whole ? 'w' : 'k', r->length);
    if (!whole)
        be_popular(sim, r);
    if (nj_prng_below(p, 8) == 0) {
        r->method = "HEAD";
        r->body_bytes = 0;
    } else if (sim->mix.odd_clients && r->length > 1 && nj_prng_below(p, 8) == 0) {
        r->reset_after = nj_prng_below(p, (uint32_t)r->length);
    }
}

static void plan_odd_file(struct sim *sim, struct sim_request *r)
{
    struct nj_prng *p = &sim->client.prng;
    static const char kinds[] = "adpbmterx";
    char kind = kinds[nj_prng_below(p, sizeof kinds - 1)];
    uint32_t size = strchr("terx", kind) ? 2 + nj_prng_below(p, 800000) : 0;

    name_file(r, kind, size);
    switch (kind) {
    case 'a':
        expect(r, 404, "404 Not Found\n");
        break;
    case 'd':
        expect(r, 301, "301 Moved Permanently\n");
        break;
    case 'p':
        expect(r, 403, "403 Forbidden\n");
        break;
    case 'b':
        expect(r, 500, "500 Internal Server Error\n");
        break;
    case 'm':
        expect(r, 503, "503 Service Unavailable\n");
        break;
    default:
        r->status = 200;
        r->length = r->body_bytes = size;
        r->breaks = kind == 't';
        r->may_break = kind != 't';
    }
}

static void plan_request(struct sim *sim, struct sim_request *r)
{
    struct nj_prng *p = &sim->client.prng;

    r->method = "GET";
    r->reset_after = NJ_NEVER;
    r->file.id = nj_prng_below(p, 5); /* few, so that several request one file at once */
    r->may_be_busy = sim->mix.file_queue < 64 || sim->mix.file_refuse > 0;
    if (sim->mix.odd_clients && nj_prng_below(p, 8) == 0) {
        r->method = "POST";
        r->upload = nj_prng_below(p, 4) ? nj_prng_below(p, 20000) : nj_prng_below(p, 300000);
        snprintf(r->path, sizeof r->path, "/upload");
        expect(r, 405, "405 Method Not Allowed\n");
    } else if (sim->mix.odd_files && nj_prng_below(p, 4) == 0) {
        plan_odd_file(sim, r);
    } else {
        plan_file(sim, r);
    }
}

static void plan_odd_conn(struct sim_conn *c, struct nj_prng *p)
{
    uint32_t dice = nj_prng_below(p, 10);

    if (dice < 3)
        c->kind = (enum sim_conn_kind)(SIM_HTTP1 + dice);
    if (dice == 3)
        c->abort_after = nj_prng_below(p, 100000);
    if (dice == 4 || dice == 5) {
        c->stall_after = nj_prng_below(p, 300000);
        c->stall_for = nj_prng_next(p) % (20 * NJ_SEC);
        c->n_stalls = 1;
    }
    if (dice == 6) { /* reads small amounts */
        c->stall_after = nj_prng_below(p, 10000);
        c->stall_gap = 1 + nj_prng_below(p, 100000);
        c->stall_for = nj_prng_next(p) % (100 * NJ_MS);
        c->n_stalls = 30;
    }
}

/* After its FIN a client cannot open HTTP/2 windows, so all bodies must fit in the first one. In
 * HTTP/1 there is none. */
static bool may_half_close(const struct sim_conn *c)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < c->n_requests; i++) {
        if (c->req[i].upload > 0 || c->req[i].reset_after != NJ_NEVER)
            return false;
        total += c->req[i].body_bytes + 100;
    }
    bool fits = c->kind == SIM_HTTP1 || (c->kind == SIM_H2 && total < 65535);
    return fits && c->parallel == c->n_requests;
}

void nj_sim_conn_plan(struct sim_conn *c, struct sim *sim, uint32_t index)
{
    struct nj_prng *p = &sim->client.prng;

    *c = (struct sim_conn){
        .sim = sim, .index = index, .state = SIM_WAITING, .last_served = INT32_MAX};
    c->start_at = sim->now + (nj_prng_below(p, 3) ? 0 : nj_prng_next(p) % (3 * NJ_SEC));
    c->stall_after = c->abort_after = c->close_at = NJ_NEVER;
    c->n_requests = 1 + nj_prng_below(p, sim->mix.n_requests);
    c->parallel = 1 + nj_prng_below(p, c->n_requests);
    c->window = nj_prng_below(p, 2) ? 65535 : 65535 + nj_prng_below(p, 1u << 20);
    c->stay = nj_prng_below(p, 6) == 0;
    if (nj_prng_below(p, 4) == 0) {
        c->cut_after = 1 + nj_prng_below(p, 100);
        c->cut_for = nj_prng_next(p) % (300 * NJ_MS);
    }
    if (sim->mix.odd_clients)
        plan_odd_conn(c, p);
    if (sim->mix.http1 && c->kind == SIM_H2)
        c->kind = SIM_HTTP1;
    if (c->kind == SIM_SILENT)
        c->close_at = c->start_at + 15 * NJ_SEC;
    for (uint32_t i = 0; i < c->n_requests; i++)
        plan_request(sim, &c->req[i]);
    if (c->kind == SIM_HTTP1)
        nj_sim_h1_plan(c);
    c->half_close = sim->mix.odd_clients && nj_prng_below(p, 2) && may_half_close(c);
    c->port = (uint16_t)(40000 + (sim->seed + index * 7919) % 20000);
    /* Only the second connection: a chain would wait for one TIME_WAIT after another. */
    /* A reset leaves no TIME_WAIT, and only timestamps distinguish old packets from new ones. The
     * timestamp clocks must have advanced. */
    c->rest = 5 * NJ_MS + 2 * sim->mix.net.jitter + nj_prng_next(p) % (50 * NJ_MS);
    c->port_of = index == 1 && nj_prng_below(p, 2) ? 0 : -1;
    if (sim->mix.tls.on)
        nj_sim_tls_plan(c);
    nj_sim_log(sim, "conn %u: %s%s, %u requests, %u at once", index, kind_name[c->kind],
               c->tls.on ? " over TLS" : "", c->n_requests, c->parallel);
}
