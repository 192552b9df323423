/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients, requests and responses of nightjar/test.h. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/testing_internal.h"

#define OWN_ADDRESS "198.51.100.1"
#define CALL_NS     (3600 * NJ_SEC)

/* --- clients ---------------------------------------------------------------------------------- */

struct nj_test_client *nj_test_connect(struct nj_test *t, const char *address)
{
    struct in_addr from;

    if (inet_pton(AF_INET, address, &from) != 1)
        return NULL;
    struct nj_test_client *c = nj__test_alloc(sizeof *c);
    c->t = t;
    c->tuple.local = nj_addr_from_v4(from.s_addr);
    c->tuple.remote = t->shard->cfg.iface.addr[0].ip;
    c->tuple.lport = t->next_port++;
    c->tuple.rport = t->shard->cfg.listeners.at[0].port;
    c->decoder = nj__hpack_decoder_new(t->hpack);
    c->next = t->clients;
    t->clients = c;
    nj__test_h2_open(c);
    nj__test_tcp_open(c);
    nj__test_settle(t);
    return c->is_connected && !c->is_dead ? c : NULL;
}

void nj_test_disconnect(struct nj_test_client *c)
{
    nj__test_tcp_reset(c);
    nj__test_h2_end(c);
    nj__test_settle(c->t);
}

static struct nj_test_client *own_client(struct nj_test *t)
{
    if (!t->own || t->own->is_dead || t->own->has_goaway) {
        struct nj_test_client *c = nj_test_connect(t, OWN_ADDRESS);
        t->own = c ? c : t->clients; /* refused: it has no bytes, and its requests end so */
    }
    return t->own;
}

static void free_fields(struct nj_test_field *field, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        free((char *)(uintptr_t)field[i].name);
        free((char *)(uintptr_t)field[i].value);
    }
    free(field);
}

static void free_request(struct nj_test_request *r)
{
    free(r->method);
    free(r->path);
    free(r->scheme);
    free(r->authority);
    free_fields(r->field, r->n_fields);
    free_fields(r->resp.field, r->resp.n_fields);
    free_fields(r->resp.trailer, r->resp.n_trailers);
    free(r->pending.p);
    free(r->body.p);
    free(r);
}

void nj__test_clients_free(struct nj_test *t)
{
    while (t->clients) {
        struct nj_test_client *c = t->clients;
        t->clients = c->next;
        while (c->requests) {
            struct nj_test_request *r = c->requests;
            c->requests = r->next;
            free_request(r);
        }
        nj__hpack_decoder_free(c->decoder);
        free(c->in.p);
        free(c->out.p);
        free(c->block.p);
        free(c);
    }
}

/* --- requests --------------------------------------------------------------------------------- */

static char *text(const char *p)
{
    return nj__test_text(p, strlen(p));
}

struct nj_test_request *nj_test_request(struct nj_test *t, struct nj_test_client *client,
                                        const char *method, const char *path)
{
    struct nj_test_request *r = nj__test_alloc(sizeof *r);

    r->client = client ? client : own_client(t);
    r->method = text(method);
    r->path = text(path);
    r->scheme = text("http");
    r->authority = text("test");
    r->resp.body = "";
    r->next = r->client->requests;
    r->client->requests = r;
    return r;
}

static void replace(char **at, const char *value)
{
    free(*at);
    *at = text(value);
}

void nj_test_request_header(struct nj_test_request *r, const char *name, const char *value)
{
    if (strcmp(name, ":authority") == 0) {
        replace(&r->authority, value);
    } else if (strcmp(name, ":scheme") == 0) {
        replace(&r->scheme, value);
    } else {
        r->field = nj__test_resize(r->field, (r->n_fields + 1) * sizeof r->field[0]);
        r->field[r->n_fields++] = (struct nj_test_field){text(name), text(value)};
    }
}

static void send_head(struct nj_test_request *r, bool ends)
{
    if (r->id)
        return;
    nj__test_h2_send_head(r, ends);
    if (r->client->is_dead)
        r->resp.is_reset = true;
}

void nj_test_request_room(struct nj_test_request *r, uint32_t n_bytes)
{
    if (r->id) {
        nj__test_h2_give_room(r, n_bytes);
        nj__test_settle(r->client->t);
        return;
    }
    r->is_slow = true;
    r->room += n_bytes;
}

void nj_test_request_body(struct nj_test_request *r, const void *data, size_t n_bytes)
{
    send_head(r, false);
    if (!r->is_ended)
        nj__test_append(&r->pending, data, n_bytes);
    nj__test_settle(r->client->t);
}

void nj_test_request_end(struct nj_test_request *r)
{
    send_head(r, true);
    r->is_ended = true;
    nj__test_settle(r->client->t);
}

void nj_test_request_reset(struct nj_test_request *r)
{
    if (r->id)
        nj__test_h2_reset(r);
    nj__test_settle(r->client->t);
}

const struct nj_test_response *nj_test_response(const struct nj_test_request *r)
{
    return &r->resp;
}

const char *nj_test_response_header(const struct nj_test_response *resp, const char *name)
{
    for (uint32_t i = 0; i < resp->n_fields; i++)
        if (strcmp(resp->field[i].name, name) == 0)
            return resp->field[i].value;
    return NULL;
}

const struct nj_test_response *nj_test_call(struct nj_test *t, const char *method, const char *path,
                                            const void *body, size_t n_bytes)
{
    struct nj_test_request *r = nj_test_request(t, NULL, method, path);

    if (body) {
        char length[24];
        snprintf(length, sizeof length, "%zu", n_bytes);
        nj_test_request_header(r, "content-length", length);
        nj_test_request_body(r, body, n_bytes);
    }
    nj_test_request_end(r);
    nj_test_wait(r, CALL_NS);
    return &r->resp;
}
