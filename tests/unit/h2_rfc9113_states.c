/* SPDX-License-Identifier: BSD-3-Clause */
/* RFC 9113 5.1: every frame type on a stream in every state. */
#include "h2_rfc9113_rig.h"

enum state {
    IDLE,         /* above all ids so far */
    EVEN,         /* of the server's, none of which is ever opened */
    OPEN,         /* the request has neither an end nor a response */
    HALF_REMOTE,  /* the request is complete, there is no response yet */
    HALF_LOCAL,   /* the response is complete, the request is not */
    ENDED,        /* both are complete */
    CLIENT_RESET, /* the client has reset it */
    SERVER_RESET, /* the server has reset it, and the client may not know yet */
    JUMPED,       /* never used, but one above it was (RFC 9113 5.1.1) */
    STATES
};

enum form {
    DATA,
    DATA_END,
    REQUEST,  /* HEADERS with pseudo fields and END_STREAM */
    TRAILERS, /* HEADERS without, and END_STREAM */
    GOES_ON,  /* the same without END_STREAM */
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    PUSH_PROMISE,
    PING,
    GOAWAY,
    WINDOW_UPDATE,
    CONTINUATION,
    PRIORITY_UPDATE,
    UNKNOWN,
    FORMS
};

static const char *const state_names[] = {"idle",         "even",         "open",
                                          "half remote",  "half local",   "ended",
                                          "client reset", "server reset", "jumped over"};
static const char *const form_names[] = {
    "DATA",     "DATA end",      "request",      "trailers",        "trailers without end",
    "PRIORITY", "RST_STREAM",    "SETTINGS",     "PUSH_PROMISE",    "PING",
    "GOAWAY",   "WINDOW_UPDATE", "CONTINUATION", "PRIORITY_UPDATE", "unknown"};

#define PROTOCOL  RFC_CONN(RFC_E_PROTOCOL)
#define IGNORED   RFC_IGNORED
#define GONE      RFC_GONE
#define MALFORMED RFC_STREAM(RFC_E_PROTOCOL)
#define HALF      RFC_STREAM(RFC_E_CLOSED)
/* RFC 9113 5.1.1 speaks of an unexpected id, 5.1 of a closed stream. */
#define GONE_HEAD                                                                                  \
    ((struct rfc_may){                                                                             \
        .conn = RFC_E_CLOSED | RFC_E_PROTOCOL, .reset = RFC_E_CLOSED, .ignored = true})
/* RFC 9113 8.1: a complete response, then RST_STREAM with NO_ERROR; else the request may go on. */
#define GOES       ((struct rfc_may){.reset = RFC_E_NONE, .ignored = true})
#define GOES_WRONG ((struct rfc_may){.conn = RFC_E_PROTOCOL, .reset = RFC_E_PROTOCOL | RFC_E_NONE})
/* It belongs to the connection, or in a header block. */
#define NOT_ON_STREAMS                                                                             \
    [SETTINGS] = PROTOCOL, [PUSH_PROMISE] = PROTOCOL, [PING] = PROTOCOL, [GOAWAY] = PROTOCOL,      \
    [CONTINUATION] = PROTOCOL
/* A server need not know PRIORITY_UPDATE (RFC 9218 7.1); if it does, it is one of those frames. */
#define NOT_OURS                                                                                   \
    [PRIORITY] = IGNORED, [UNKNOWN] = IGNORED,                                                     \
    [PRIORITY_UPDATE] = {.conn = RFC_E_PROTOCOL, .ignored = true}

static const struct rfc_may reactions[STATES][FORMS] = {
    /* "Receiving any frame other than HEADERS or PRIORITY on a stream in this state MUST be treated
     * as a connection error of type PROTOCOL_ERROR", but unknown frames are ignored (4.1, 5.5). */
    [IDLE] = {[DATA] = PROTOCOL,
              [DATA_END] = PROTOCOL,
              [REQUEST] = IGNORED,
              [TRAILERS] = MALFORMED,
              [GOES_ON] = MALFORMED,
              [RST_STREAM] = PROTOCOL,
              [WINDOW_UPDATE] = PROTOCOL,
              NOT_ON_STREAMS,
              NOT_OURS},
    /* 5.1.1: "Streams initiated by a client MUST use odd-numbered stream identifiers". */
    [EVEN] = {[DATA] = PROTOCOL,
              [DATA_END] = PROTOCOL,
              [REQUEST] = PROTOCOL,
              [TRAILERS] = PROTOCOL,
              [GOES_ON] = PROTOCOL,
              [RST_STREAM] = PROTOCOL,
              [WINDOW_UPDATE] = PROTOCOL,
              NOT_ON_STREAMS,
              NOT_OURS},
    /* 8.1: the last HEADERS bears END_STREAM; 8.1: there are no pseudo fields in trailers. */
    [OPEN] = {[DATA] = IGNORED,
              [DATA_END] = IGNORED,
              [REQUEST] = MALFORMED,
              [TRAILERS] = IGNORED,
              [GOES_ON] = MALFORMED,
              [RST_STREAM] = IGNORED,
              [WINDOW_UPDATE] = IGNORED,
              NOT_ON_STREAMS,
              NOT_OURS},
    /* "If an endpoint receives additional frames, other than WINDOW_UPDATE, PRIORITY, or
     * RST_STREAM, for a stream that is in this state, it MUST respond with a stream error of type
     * STREAM_CLOSED." */
    [HALF_REMOTE] = {[DATA] = HALF,
                     [DATA_END] = HALF,
                     [REQUEST] = HALF,
                     [TRAILERS] = HALF,
                     [GOES_ON] = HALF,
                     [RST_STREAM] = IGNORED,
                     [WINDOW_UPDATE] = IGNORED,
                     NOT_ON_STREAMS,
                     NOT_OURS},
    [HALF_LOCAL] = {[DATA] = GOES,
                    [DATA_END] = GOES,
                    [REQUEST] = GOES_WRONG,
                    [TRAILERS] = GOES,
                    [GOES_ON] = GOES_WRONG,
                    [RST_STREAM] = GOES,
                    [WINDOW_UPDATE] = GOES,
                    NOT_ON_STREAMS,
                    NOT_OURS},
    /* "An endpoint MAY treat receipt of any other type of frame on a closed stream as a connection
     * error of type STREAM_CLOSED", but RST_STREAM and WINDOW_UPDATE may be under way (6.9: "A
     * receiver MUST NOT treat this as an error"). */
    [ENDED] = {[DATA] = GONE,
               [DATA_END] = GONE,
               [REQUEST] = GONE_HEAD,
               [TRAILERS] = GONE_HEAD,
               [GOES_ON] = GONE_HEAD,
               [RST_STREAM] = IGNORED,
               [WINDOW_UPDATE] = IGNORED,
               NOT_ON_STREAMS,
               NOT_OURS},
    [CLIENT_RESET] = {[DATA] = GONE,
                      [DATA_END] = GONE,
                      [REQUEST] = GONE_HEAD,
                      [TRAILERS] = GONE_HEAD,
                      [GOES_ON] = GONE_HEAD,
                      [RST_STREAM] = {.conn = RFC_E_CLOSED, .ignored = true},
                      [WINDOW_UPDATE] = IGNORED,
                      NOT_ON_STREAMS,
                      NOT_OURS},
    /* "An endpoint MUST minimally process and then discard any frames it receives in this state."
     */
    [SERVER_RESET] = {[DATA] = IGNORED,
                      [DATA_END] = IGNORED,
                      [REQUEST] = IGNORED,
                      [TRAILERS] = IGNORED,
                      [GOES_ON] = IGNORED,
                      [RST_STREAM] = IGNORED,
                      [WINDOW_UPDATE] = IGNORED,
                      NOT_ON_STREAMS,
                      NOT_OURS},
    /* 5.1.1: "The identifier of a newly established stream MUST be numerically greater"; all other
     * frames meet a closed stream, or one that was never opened (6.4, 6.9). */
    [JUMPED] = {[DATA] = {RFC_E_CLOSED | RFC_E_PROTOCOL, RFC_E_CLOSED, true},
                [DATA_END] = {RFC_E_CLOSED | RFC_E_PROTOCOL, RFC_E_CLOSED, true},
                [REQUEST] = PROTOCOL,
                [TRAILERS] = PROTOCOL,
                [GOES_ON] = PROTOCOL,
                [RST_STREAM] = {.conn = RFC_E_CLOSED | RFC_E_PROTOCOL, .ignored = true},
                [WINDOW_UPDATE] = {.conn = RFC_E_CLOSED | RFC_E_PROTOCOL, .ignored = true},
                NOT_ON_STREAMS,
                NOT_OURS},
};

/* A stream in that state; returns its id. */
static uint32_t reach(struct rfc *c, enum state state)
{
    c->hold = state != ENDED && state != JUMPED;
    switch ((int)state) {
    case IDLE:
        rfc_get(c, 1);
        return 7;
    case EVEN:
        rfc_get(c, 5);
        return 4;
    case OPEN:
    case CLIENT_RESET:
    case HALF_LOCAL:
    case SERVER_RESET:
        rfc_post(c, 5);
        break;
    case JUMPED:
        rfc_get(c, 5);
        return 3;
    default:
        rfc_get(c, 5);
        break;
    }
    rfc_go(c);
    if (state == CLIENT_RESET)
        rfc_say32(c, RFC_RST_STREAM, 5, 8);
    if (state == HALF_LOCAL)
        rfc_answer(c, 5, 128);
    if (state == SERVER_RESET)
        nj_h2_reset_stream(rfc_stream(c, 5)->st, 8);
    return 5;
}

static void check_state(struct rfc *c, enum state state, uint32_t id)
{
    struct rfc_stream *s = rfc_stream(c, id);
    switch ((int)state) {
    case OPEN:
    case HALF_REMOTE:
        RFC_CHECK(c, s->st && s->ends == (state == HALF_REMOTE), "not held");
        break;
    case HALF_LOCAL:
        RFC_CHECK(c, s->ended && s->status == 200 && (!s->reset || s->code == 0), "no answer");
        break;
    case ENDED:
        RFC_CHECK(c, s->ended && s->closed && s->complete, "not ended");
        break;
    case CLIENT_RESET:
        RFC_CHECK(c, s->closed && !s->complete && !s->reset, "not reset");
        break;
    case SERVER_RESET:
        RFC_CHECK(c, s->closed && s->reset && s->code == 8, "not reset");
        s->reset = false; /* a second one would be the reaction */
        break;
    default:
        RFC_CHECK(c, !s->shown, "shown");
        break;
    }
}

static void say_form(struct rfc *c, enum form form, uint32_t id)
{
    static const uint8_t types[] = {
        [PRIORITY] = RFC_PRIORITY,
        [SETTINGS] = RFC_SETTINGS,
        [PING] = RFC_PING,
        [GOAWAY] = RFC_GOAWAY,
        [CONTINUATION] = RFC_CONTINUATION,
        [PRIORITY_UPDATE] = RFC_PRIORITY_UPDATE,
        [UNKNOWN] = RFC_UNKNOWN,
    };
    static const uint8_t sizes[] = {[PRIORITY] = 5, [SETTINGS] = 6,         [PING] = 8,
                                    [GOAWAY] = 8,   [PRIORITY_UPDATE] = 10, [UNKNOWN] = 33};
    switch ((int)form) {
    case DATA:
    case DATA_END:
        rfc_say_zeros(c, RFC_DATA, form == DATA_END ? RFC_END_STREAM : 0, id, 100);
        break;
    case REQUEST:
        rfc_head_sync(c, id, RFC_ENDS);
        break;
    case TRAILERS:
    case GOES_ON:
        rfc_trailers_sync(c, id, form == TRAILERS ? RFC_ENDS : RFC_END_HEADERS);
        break;
    case RST_STREAM:
        rfc_say32(c, RFC_RST_STREAM, id, 8);
        break;
    case WINDOW_UPDATE:
        rfc_say32(c, RFC_WINDOW_UPDATE, id, 100);
        break;
    case PUSH_PROMISE:
        rfc_say(c, RFC_PUSH_PROMISE, RFC_END_HEADERS, id, "\0\0\0\2\x82\x86\x84\x41\1h", 10);
        break;
    case CONTINUATION:
        rfc_say(c, RFC_CONTINUATION, RFC_END_HEADERS, id, "\x82", 1);
        break;
    default:
        rfc_say_zeros(c, types[form], 0, id, form < NJ_ARRAY_LEN(sizes) ? sizes[form] : 0);
        break;
    }
}

struct cell {
    enum state state;
    enum form form;
};

static void run_cell(struct rfc *c, const void *arg)
{
    const struct cell *cell = arg;
    snprintf(c->what, sizeof c->what, "%s on %s: ", form_names[cell->form],
             state_names[cell->state]);
    rfc_hello(c);
    uint32_t id = reach(c, cell->state);
    rfc_go(c);
    check_state(c, cell->state, id);
    struct rfc_stream *s = rfc_stream(c, id);
    struct rfc_stream before = *s;
    say_form(c, cell->form, id);
    rfc_go(c);
    rfc_expect(c, id, reactions[cell->state][cell->form]);
    RFC_CHECK(c, cell->form != RST_STREAM || c->over || s->closed == s->shown, "still there");
    /* The frame does not reach the owner of another stream. */
    if (cell->state != OPEN && cell->state != HALF_LOCAL)
        RFC_CHECK(c, s->n_body == before.n_body && s->body_ended == before.body_ended, "shown");
    if (cell->state == OPEN)
        RFC_CHECK(c,
                  c->over || s->closed ||
                      s->body_ended == (cell->form == DATA_END || cell->form == TRAILERS),
                  "the end");
}

static void run_state(enum state state)
{
    for (unsigned form = 0; form < FORMS; form++) {
        const struct cell cell = {state, (enum form)form};
        rfc_every_way(run_cell, &cell);
    }
}

Test(h2_rfc9113_states, idle)
{
    run_state(IDLE);
}

Test(h2_rfc9113_states, even)
{
    run_state(EVEN);
}

Test(h2_rfc9113_states, open)
{
    run_state(OPEN);
}

Test(h2_rfc9113_states, half_closed_remote)
{
    run_state(HALF_REMOTE);
}

Test(h2_rfc9113_states, half_closed_local)
{
    run_state(HALF_LOCAL);
}

Test(h2_rfc9113_states, ended)
{
    run_state(ENDED);
}

Test(h2_rfc9113_states, client_reset)
{
    run_state(CLIENT_RESET);
}

Test(h2_rfc9113_states, server_reset)
{
    run_state(SERVER_RESET);
}

Test(h2_rfc9113_states, jumped_over)
{
    run_state(JUMPED);
}
