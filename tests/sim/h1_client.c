/* SPDX-License-Identifier: BSD-3-Clause */
/* The HTTP/1 part of a client (RFC 9112): sends requests, also before earlier ones are answered
 * (9.3.2), and checks every response. */
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "h1.h"
#include "sim.h"

#define HEAD_MAX    4096u  /* of a request */
#define PAD_MAX     2500u  /* of its field that has no meaning */
#define CHUNK_MAX   3000u  /* of an upload */
#define EXT_UNTIL   30000u /* chunks behind that have no extensions: a request may have 1 KiB */
/* The server reads the rest of a body that is not longer, else it ends the connection. */
#define SKIPPED_MAX 65536u

static bool is_head(const struct sim_request *r)
{
    return strcmp(r->method, "HEAD") == 0;
}

static void wrong(struct sim_conn *c, const struct sim_request *r, const char *what)
{
    nj_sim_fail(c->sim,
                "conn %u request %u %s %s: %s (status %u, length %lu, %lu of %lu bytes came)",
                c->index, (unsigned)(r - c->req), r->method, r->path, what, r->got_status,
                (unsigned long)r->got_length, (unsigned long)r->got, (unsigned long)r->body_bytes);
}

/* The client does not want another response (RFC 9112 9.3). */
static bool is_last(const struct sim_request *r)
{
    return r->says_close || (r->is_1_0 && !r->keeps);
}

/* The server may answer before it has the body, and not read the rest of it; or the end of the
 * connection is that of the response. */
static bool may_give_up(const struct sim_request *r)
{
    return r->is_chunked || r->expects || r->upload > SKIPPED_MAX || (r->echoes && r->is_1_0);
}

/* The request that is answered next, or NULL. */
static struct sim_request *current(struct sim_conn *c)
{
    return c->n_done < c->n_begun && !c->h1.ended ? &c->req[c->n_done] : NULL;
}

/* May the response of `r` end in the middle by now? */
static bool may_have_broken(const struct sim_conn *c, const struct sim_request *r)
{
    return r->breaks || (r->may_break && nj_sim_may_have_broken(c->sim, &r->file, r->asked_at));
}

/* --- requests ------------------------------------------------------------------------------ */

static void put(struct sim_h1_conn *h, const void *bytes, size_t n)
{
    NJ_CHECK(h->n_out + n <= sizeof h->out);
    memcpy(h->out + h->n_out, bytes, n);
    h->n_out += (uint32_t)n;
}

static void put_text(struct sim_h1_conn *h, const char *text)
{
    put(h, text, strlen(text));
}

static bool one_in(struct sim_h1_conn *h, uint32_t n)
{
    return nj_prng_below(&h->prng, n) == 0;
}

static void put_request_line(struct sim_conn *c, const struct sim_request *r)
{
    struct sim_h1_conn *h = &c->h1;
    bool is_absolute = one_in(h, 8);

    if (one_in(h, 8))
        put_text(h, "\r\n"); /* RFC 9112 2.2 */
    put_text(h, r->method);
    put_text(h, is_absolute ? c->tls.on ? " https://sim" : " http://sim" : " ");
    put_text(h, r->path);
    put_text(h, r->is_1_0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
    if (!r->is_1_0 || one_in(h, 2))
        put_text(h, one_in(h, 2) ? "Host: sim\r\n" : "hOST:sim \r\n");
}

static void put_head(struct sim_conn *c, const struct sim_request *r)
{
    struct sim_h1_conn *h = &c->h1;
    char line[64];

    put_request_line(c, r);
    put_text(h, r->field);
    if (r->says_close)
        put_text(h, "Connection: close\r\n");
    else if (r->is_1_0 && r->keeps)
        put_text(h, "Connection: Keep-Alive\r\n");
    if (one_in(h, 8)) {
        put_text(h, "X-Pad: ");
        for (uint32_t n = nj_prng_below(&h->prng, PAD_MAX); n > 0; n--)
            put(h, "p", 1);
        put_text(h, "\r\n");
    }
    if (r->expects)
        put_text(h, "Expect: 100-continue\r\n");
    if (r->is_chunked) {
        put_text(h, "Transfer-Encoding: chunked\r\n");
    } else if (strcmp(r->method, "POST") == 0) {
        snprintf(line, sizeof line, "Content-Length: %lu\r\n", (unsigned long)r->upload);
        put_text(h, line);
    }
    put_text(h, "\r\n");
}

static uint8_t upload_byte(const struct sim_request *r, uint64_t at)
{
    return (uint8_t)(at * 131 ^ at >> 9 ^ r->file.id);
}

/* Writes a piece of the body of h->upload, and at last its end. */
static void put_body(struct sim_conn *c)
{
    struct sim_h1_conn *h = &c->h1;
    struct sim_request *r = h->upload;
    uint64_t left = r->upload - r->uploaded;
    uint32_t n = 1 + nj_prng_below(&h->prng, CHUNK_MAX);
    char line[64];

    n = n < left ? n : (uint32_t)left;
    if (r->is_chunked && n > 0) {
        bool has_ext = r->uploaded < EXT_UNTIL && one_in(h, 2);
        snprintf(line, sizeof line, has_ext ? "00%X;a=\"b;\\\"\" ; c\r\n" : "%x\r\n", n);
        put_text(h, line);
    }
    for (uint32_t i = 0; i < n; i++)
        h->out[h->n_out++] = upload_byte(r, r->uploaded++);
    if (r->is_chunked && n > 0)
        put_text(h, "\r\n");
    if (r->uploaded < r->upload)
        return;
    if (r->is_chunked)
        put_text(h, one_in(h, 2) ? "0\r\n\r\n" : "0\r\nX-Sum: 1\r\n\r\n");
    h->upload = NULL;
}

static bool may_ask(const struct sim_conn *c)
{
    return c->n_begun < c->n_requests && c->n_begun - c->n_done < c->parallel && !c->h1.ends &&
           !c->peer_fin;
}

static void ask(struct sim_conn *c)
{
    struct sim_request *r = &c->req[c->n_begun++];

    r->asked_at = c->sim->now;
    put_head(c, r);
    if (r->upload > 0 || r->is_chunked)
        c->h1.upload = r;
    c->h1.awaits_continue = r->expects;
    c->h1.may_end |= is_last(r) || may_give_up(r);
}

/* Behind a response that is the last the server reads only an upload that it sends back. */
static bool may_write(const struct sim_conn *c)
{
    return !c->h1.ends || (!c->h1.ended && c->req[c->n_done].echoes);
}

static void fill(struct sim_conn *c)
{
    struct sim_h1_conn *h = &c->h1;

    while (may_write(c) && h->n_out + HEAD_MAX <= sizeof h->out) {
        if (h->upload && !h->awaits_continue)
            put_body(c);
        else if (!h->upload && may_ask(c))
            ask(c);
        else
            break;
    }
}

static size_t output(struct sim_conn *c, const uint8_t **data)
{
    struct sim_h1_conn *h = &c->h1;

    if (h->out_off == h->n_out) {
        h->out_off = h->n_out = 0;
        fill(c);
    }
    uint32_t n = h->n_out - h->out_off;
    if (n == 0 || !may_write(c))
        return 0;
    if (one_in(h, 4))
        n = 1 + nj_prng_below(&h->prng, n);
    *data = h->out + h->out_off;
    h->out_off += n;
    return n;
}

/* --- responses ----------------------------------------------------------------------------- */

static void expect_busy(struct sim_request *r)
{
    static const char text[] = "503 Service Unavailable\n";

    r->text = text;
    r->length = sizeof text - 1;
    r->body_bytes = is_head(r) ? 0 : r->length;
    r->breaks = r->may_break = false;
    r->range[0] = '\0';
    r->status = 503;
}

/* A server that drains answers no request that follows another one. */
static bool is_too_late(const struct sim_conn *c, const struct sim_request *r)
{
    return c->n_done > 0 && c->sim->draining && r->asked_at > c->sim->drain_began_at + NJ_SEC;
}

/* Does the response say correctly whether the connection goes on (RFC 9112 9.3)? */
static void check_connection(struct sim_conn *c, const struct sim_request *r,
                             const struct sim_h1_head *head)
{
    bool may_close = is_last(r) || may_give_up(r) || c->sim->draining;

    if (is_too_late(c, r))
        wrong(c, r, "an answer although the server drains");
    if (head->closes && !may_close)
        wrong(c, r, "Connection: close without a reason");
    if (!head->closes && is_last(r))
        wrong(c, r, "no Connection: close");
    if (!head->closes && r->is_1_0 && !head->keeps)
        wrong(c, r, "no Connection: keep-alive");
    if (head->keeps && !r->is_1_0)
        wrong(c, r, "Connection: keep-alive for HTTP/1.1");
}

/* Only handlers write responses whose length is not known when they begin (RFC 9112 6.3). */
static bool is_length_right(const struct sim_request *r, const struct sim_h1_head *head)
{
    if (r->status == 304)
        return !head->has_length && !head->is_chunked;
    if (head->has_length || !r->echoes)
        return head->has_length && !head->is_chunked && head->length == r->length;
    return r->is_1_0 ? !head->is_chunked && head->closes : head->is_chunked;
}

static void check_head(struct sim_conn *c, struct sim_request *r, const struct sim_h1_head *head)
{
    r->got_status = head->status;
    r->got_length = head->length;
    r->version = head->version;
    if (r->may_be_busy && head->status == 503)
        expect_busy(r);
    else if (r->may_break)
        r->length = r->body_bytes = nj_sim_version_size(&r->file, r->version);
    if (head->status != r->status)
        wrong(c, r, "status");
    else if (!is_length_right(r, head))
        wrong(c, r, "Content-Length");
    else if (strcmp(head->range, r->range) != 0)
        wrong(c, r, "Content-Range");
    else if (!head->has_date)
        wrong(c, r, "no Date");
    else
        check_connection(c, r, head);
    c->h1.framing = head->is_chunked   ? SIM_CHUNKED
                    : head->has_length ? SIM_BY_LENGTH
                                       : SIM_BY_CLOSE;
    if (r->status == 304)
        c->h1.framing = SIM_BY_LENGTH;
}

/* The server did not wait longer for the rest of a head. */
static bool is_late(const struct sim_conn *c, const struct sim_h1_head *head)
{
    return head->status == 408 && head->closes && nj_sim_mix_delays(&c->sim->mix);
}

static void end_response(struct sim_conn *c, struct sim_request *r)
{
    struct sim_h1_conn *h = &c->h1;

    nj_sim_log(c->sim, "conn %u request %u: %s %s: status %u, %lu bytes%s", c->index, c->n_done,
               r->method, r->path, r->got_status, (unsigned long)r->got, h->ends ? ", last" : "");
    h->in_body = false;
    h->ended = h->ends;
    r->closed = true;
    c->n_done++;
    if (r->breaks)
        wrong(c, r, "a file that breaks did not break the response");
}

static void begin_response(struct sim_conn *c, struct sim_request *r)
{
    struct sim_h1_conn *h = &c->h1;
    struct sim_h1_head head;
    const char *why = nj_sim_h1_parse(h->head, h->n_head, &head);

    h->n_head = 0;
    if (why) {
        wrong(c, r, why);
        return;
    }
    if (is_late(c, &head)) {
        c->was_late = h->ends = h->ended = true;
        return;
    }
    if (head.status == 100 && r->expects && r == h->upload && h->awaits_continue) {
        h->awaits_continue = false;
        return;
    }
    check_head(c, r, &head);
    h->ends = head.closes;
    if (r == h->upload)
        h->awaits_continue = false;
    h->in_body = true;
    if (r->body_bytes == 0 && h->framing == SIM_BY_LENGTH)
        end_response(c, r);
}

/* Takes bytes up to the end of a head. Returns how many. */
static size_t take_head(struct sim_conn *c, struct sim_request *r, const uint8_t *data, size_t n)
{
    struct sim_h1_conn *h = &c->h1;

    for (size_t i = 0; i < n; i++) {
        if (h->n_head == sizeof h->head) {
            wrong(c, r, "a head that is too long");
            return n;
        }
        h->head[h->n_head++] = (char)data[i];
        if (h->n_head >= 4 && memcmp(h->head + h->n_head - 4, "\r\n\r\n", 4) == 0) {
            begin_response(c, r);
            return i + 1;
        }
    }
    return n;
}

static bool is_same(const struct sim_request *r, const uint8_t *data, size_t n)
{
    if (r->text)
        return memcmp(r->text + r->got, data, n) == 0;
    if (!r->echoes)
        return nj_sim_file_check(r->file.id, r->version, r->first + r->got, data, n) == n;
    for (size_t i = 0; i < n; i++)
        if (data[i] != upload_byte(r, r->got + i))
            return false;
    return true;
}

static size_t take_bytes(struct sim_conn *c, struct sim_request *r, const uint8_t *data, size_t n)
{
    if (n > r->body_bytes - r->got)
        wrong(c, r, "body too long");
    else if (!is_same(r, data, n))
        wrong(c, r, "bytes of the body");
    r->got += n;
    return n;
}

/* A line of chunked coding (RFC 9112 7.1), without its CRLF. This server has no extensions. */
static void take_line(struct sim_conn *c, struct sim_request *r, const char *line)
{
    struct sim_h1_conn *h = &c->h1;
    char *end;

    if (h->chunk_ends) {
        h->chunk_ends = false;
        if (line[0] != '\0')
            wrong(c, r, "no CRLF behind a chunk");
    } else if (!h->in_trailers) {
        h->chunk_left = strtoull(line, &end, 16);
        if (end == line || *end != '\0')
            wrong(c, r, "the size of a chunk");
        h->chunk_ends = h->chunk_left > 0;
        h->in_trailers = h->chunk_left == 0;
    } else if (line[0] != '\0') {
        if (strcmp(line, "X-Sum: 1") != 0)
            wrong(c, r, "a trailer");
    } else if (r->got != r->body_bytes) {
        wrong(c, r, "the last chunk before the end of the body");
    } else {
        h->in_trailers = false;
        end_response(c, r);
    }
}

static size_t take_chunked(struct sim_conn *c, struct sim_request *r, const uint8_t *data, size_t n)
{
    struct sim_h1_conn *h = &c->h1;

    if (h->chunk_left > 0) {
        n = n < h->chunk_left ? n : (size_t)h->chunk_left;
        h->chunk_left -= n;
        return take_bytes(c, r, data, n);
    }
    h->head[h->n_head++] = (char)data[0];
    if (h->n_head >= 2 && memcmp(h->head + h->n_head - 2, "\r\n", 2) == 0) {
        h->head[h->n_head - 2] = '\0';
        h->n_head = 0;
        take_line(c, r, h->head);
    } else if (h->n_head == sizeof h->head) {
        wrong(c, r, "a line that is too long");
    }
    return 1;
}

static size_t take_body(struct sim_conn *c, struct sim_request *r, const uint8_t *data, size_t n)
{
    uint64_t left = r->body_bytes - r->got;

    if (c->h1.framing == SIM_CHUNKED)
        return take_chunked(c, r, data, n);
    if (c->h1.framing == SIM_BY_LENGTH)
        n = n < left ? n : (size_t)left;
    take_bytes(c, r, data, n);
    if (r->got > r->reset_after) {
        r->was_reset = true;
        c->abort_after = 0;
    }
    if (r->got == r->body_bytes && c->h1.framing == SIM_BY_LENGTH)
        end_response(c, r);
    return n;
}

static void input(struct sim_conn *c, const uint8_t *data, size_t n)
{
    c->heard = true;
    while (n > 0 && !c->sim->record.failed) {
        struct sim_request *r = current(c);
        if (!r) {
            nj_sim_fail(c->sim, "conn %u: %zu bytes behind the last response", c->index, n);
            return;
        }
        size_t used = c->h1.in_body ? take_body(c, r, data, n) : take_head(c, r, data, n);
        data += used;
        n -= used;
    }
}

/* --- life ---------------------------------------------------------------------------------- */

static void open_h1(struct sim_conn *c)
{
    (void)c; /* output() asks */
}

static bool is_done(const struct sim_conn *c)
{
    const struct sim_h1_conn *h = &c->h1;

    return h->ended || (c->n_done == c->n_requests && !h->upload && h->out_off == h->n_out);
}

static void bye(struct sim_conn *c)
{
    c->said_bye = true;
}

/* Is the response complete, as far as the end of the connection shows it? */
static bool is_whole(const struct sim_conn *c)
{
    const struct sim_request *r = &c->req[c->n_done];

    return c->h1.in_body && c->h1.framing == SIM_BY_CLOSE && r->got == r->body_bytes;
}

/* After its FIN the server discards input for a while, then it resets the connection. What the
 * client has not read by then is lost; it reads at once unless it pauses. */
bool nj_sim_h1_may_die(const struct sim_conn *c)
{
    const struct sim_request *r = c->n_done < c->n_begun ? &c->req[c->n_done] : NULL;
    bool may_end = c->h1.may_end && (c->h1.ended || c->stall_for > 0 || is_whole(c));

    return may_end || (r && may_have_broken(c, r));
}

static void check_end(struct sim_conn *c)
{
    const struct sim_h1_conn *h = &c->h1;
    const struct sim_request *r = current(c);

    if (is_whole(c) || h->ended || c->n_done == c->n_requests || (r && may_have_broken(c, r)))
        return;
    if (h->in_body || h->n_head > 0)
        wrong(c, r, "incomplete");
    else if (!c->sim->draining)
        nj_sim_fail(c->sim, "conn %u ended, %u of %u requests were answered", c->index, c->n_done,
                    c->n_requests);
}

const struct sim_http nj_sim_h1 = {open_h1, input, output, is_done, bye, check_end};
