/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of HTTP/1.1, and the order of their responses. Contract: framing.h, h1.h. */
#include "h1.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#define METHOD_BYTES 5u /* "POST " */

/* ---- encoded requests ---- */

__attribute__((format(printf, 2, 3))) static bool add(struct load_plan *p, const char *format, ...)
{
    uint32_t n_max = sizeof p->h1.rest - p->h1.n_rest;
    va_list args;

    va_start(args, format);
    int n = vsnprintf(p->h1.rest + p->h1.n_rest, n_max, format, args);
    va_end(args);
    p->h1.n_rest += n >= 0 && (uint32_t)n < n_max ? (uint32_t)n : 0;
    return n >= 0 && (uint32_t)n < n_max;
}

static bool make(struct load_plan *p, const char *authority, const char *const *fields,
                 uint32_t n_fields)
{
    bool good, has_host = false;

    p->h1.n_rest = 0;
    for (uint32_t i = 0; i < n_fields; i++)
        has_host |= strncmp(fields[i], "host:", 5) == 0;
    good = has_host ? add(p, " HTTP/1.1\r\n") : add(p, " HTTP/1.1\r\nhost: %s\r\n", authority);
    if (p->upload_bytes)
        good = good && add(p, "content-length: %llu\r\n", (unsigned long long)p->upload_bytes);
    for (uint32_t i = 0; i < n_fields; i++)
        good = good && add(p, "%s\r\n", fields[i]);
    p->request_max = 0;
    for (uint32_t i = 0; i < p->n_paths; i++)
        if (p->request_max < p->path[i].n_bytes)
            p->request_max = p->path[i].n_bytes;
    good = good && add(p, "\r\n");
    p->request_max += METHOD_BYTES + p->h1.n_rest;
    return good;
}

/* ---- a connection ---- */

static struct h1_conn *of(struct load_conn *conn)
{
    return nj_container_of(conn, struct h1_conn, conn);
}

static bool open_conn(struct load_conn *conn, const struct load_plan *plan, void *user,
                      struct load_out *out)
{
    struct h1_conn *c = of(conn);
    uint32_t n_slots = 1;

    while (n_slots < plan->streams)
        n_slots *= 2;
    *c = (struct h1_conn){.conn = {.plan = plan, .user = user}, .mask = n_slots - 1};
    c->request = calloc(n_slots, sizeof *c->request);
    return c->request != NULL;
}

/* The oldest request ends. */
static void request_over(struct h1_conn *c, enum load_end end, nj_ns now)
{
    const struct load_request *r = &c->request[c->first++ & c->mask];

    c->conn.n_open--;
    c->conn.plan->ended(c->conn.user, r, end, now);
}

static void lose_all(struct h1_conn *c, nj_ns now)
{
    c->conn.leaving = true;
    c->upload_left = 0;
    while (c->conn.n_open > 0)
        request_over(c, LOAD_LOST, now);
}

static void close_conn(struct load_conn *conn, nj_ns now)
{
    struct h1_conn *c = of(conn);

    lose_all(c, now);
    h1_response_free(&c->response);
    free(c->request);
    *c = (struct h1_conn){0};
}

/* A request's body has no frames: the next request waits for its end. */
static uint32_t room(const struct load_conn *conn)
{
    const struct h1_conn *c = nj_container_of(conn, const struct h1_conn, conn);

    return conn->leaving || c->upload_left > 0 ? 0 : conn->plan->streams - conn->n_open;
}

static void put(struct load_out *out, const void *data, uint32_t n)
{
    memcpy(out->data + out->n_bytes, data, n);
    out->n_bytes += n;
}

static void ask(struct load_conn *conn, uint32_t path, nj_ns due, struct load_out *out)
{
    struct h1_conn *c = of(conn);
    const struct load_plan *p = conn->plan;

    c->request[(c->first + conn->n_open++) & c->mask] = (struct load_request){.due = due};
    c->upload_left = p->upload_bytes;
    if (p->upload_bytes)
        put(out, "POST ", 5);
    else
        put(out, "GET ", 4);
    put(out, p->path[path].text, p->path[path].n_bytes);
    put(out, p->h1.rest, p->h1.n_rest);
}

static uint64_t upload(struct load_conn *conn, struct load_out *out)
{
    struct h1_conn *c = of(conn);
    uint32_t n = out->n_max - out->n_bytes;

    n = n < c->upload_left ? n : (uint32_t)c->upload_left;
    memset(out->data + out->n_bytes, 'n', n);
    out->n_bytes += n;
    c->upload_left -= n;
    return n;
}

static bool give_up(struct load_conn *conn, nj_ns due, nj_ns now, struct load_out *out)
{
    struct h1_conn *c = of(conn);
    bool any = false;

    while (conn->n_open > 0 && c->request[c->first & c->mask].due < due) {
        request_over(c, LOAD_TIMEOUT, now);
        any = true;
    }
    if (any)
        lose_all(c, now);
    return !any;
}

/* ---- responses ---- */

static void response_over(struct h1_conn *c, nj_ns now)
{
    bool last = c->response.close;

    h1_response_begin(&c->response, false);
    request_over(c, LOAD_DONE, now);
    if (last)
        lose_all(c, now);
}

static bool input(struct load_conn *conn, const uint8_t *data, uint32_t n_bytes, nj_ns now,
                  struct load_out *out)
{
    struct h1_conn *c = of(conn);

    for (uint32_t n_body = 0; conn->n_open > 0;) {
        struct load_request *r = &c->request[c->first & c->mask];
        switch (h1_response_take(&c->response, &data, &n_bytes, &n_body)) {
        case H1_HEAD:
            r->status = c->response.status;
            r->first_at = now;
            conn->settled = true;
            conn->leaving |= c->response.close;
            break;
        case H1_BODY:
            r->n_body += n_body;
            conn->plan->came(conn->user, n_body);
            break;
        case H1_OVER:
            response_over(c, now);
            break;
        case H1_MORE:
            return true;
        case H1_WRONG:
            conn->fault = c->response.fault;
            return false;
        }
    }
    if (n_bytes == 0 || conn->leaving)
        return true;
    conn->fault = "a response without a request";
    return false;
}

/* RFC 9112 6.3: the end of the connection ends a body without a length. */
static void finish(struct load_conn *conn, nj_ns now)
{
    struct h1_conn *c = of(conn);

    if (conn->n_open > 0 && c->response.state == H1_UNTIL_END)
        response_over(c, now);
}

const struct load_framing h1_framing = {
    .alpn = "http/1.1",
    .stream = "request",
    .make = make,
    .open = open_conn,
    .close = close_conn,
    .input = input,
    .finish = finish,
    .room = room,
    .ask = ask,
    .upload = upload,
    .give_up = give_up,
};
