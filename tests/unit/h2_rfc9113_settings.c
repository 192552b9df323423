/* SPDX-License-Identifier: BSD-3-Clause */
/* RFC 9113 6.5: SETTINGS of server and client, and the effect of each setting. */
#include "h2_rfc9113_rig.h"

/* ---- the server's own ---- */

/* 6.5.2: the server's settings are sent, without any that a server must not send. Absent settings
 * have their initial values. The rig checks the ranges. */
RFC_CASE(h2_rfc9113_settings, of_the_server)
{
    rfc_hello(c);
    RFC_CHECK(c, c->setting[RFC_MAX_CONCURRENT_STREAMS] == 128, "MAX_CONCURRENT_STREAMS");
    RFC_CHECK(c, c->setting[RFC_MAX_HEADER_LIST_SIZE] == 32 * 1024, "MAX_HEADER_LIST_SIZE");
    RFC_CHECK(c, c->setting[RFC_NO_PRIORITIES] == 1, "NO_RFC7540_PRIORITIES");
    RFC_CHECK(c, c->setting[RFC_INITIAL_WINDOW_SIZE] >= RFC_FIRST_WINDOW, "INITIAL_WINDOW_SIZE");
    RFC_CHECK(c,
              !c->setting_came[RFC_ENABLE_CONNECT_PROTOCOL] ||
                  c->setting[RFC_ENABLE_CONNECT_PROTOCOL] == 0,
              "ENABLE_CONNECT_PROTOCOL");
    rfc_expect_alive(c);
}

/* The limits that it is given. */
RFC_CASE(h2_rfc9113_settings, of_limits)
{
    c->limits.concurrent_streams_max = 7;
    c->limits.header_bytes_max = 5000;
    rfc_hello(c);
    RFC_CHECK(c, c->setting[RFC_MAX_CONCURRENT_STREAMS] == 7, "MAX_CONCURRENT_STREAMS");
    RFC_CHECK(c, c->setting[RFC_MAX_HEADER_LIST_SIZE] == 5000, "MAX_HEADER_LIST_SIZE");
}

/* The server sends them before any input (3.4: "The server connection preface consists of a
 * potentially empty SETTINGS frame that MUST be the first frame"). */
RFC_CASE(h2_rfc9113_settings, unasked)
{
    rfc_go(c);
    RFC_CHECK(c, c->settled && c->n_acks == 0, "no preface");
}

/* ---- 6.5 the form of the frame ---- */

struct shape {
    uint32_t n;
    uint8_t flags;
    uint32_t id, codes;
};

/* "Receipt of a SETTINGS frame with the ACK flag set and a length field value other than 0 MUST be
 * treated as a connection error of type FRAME_SIZE_ERROR"; "a stream identifier field other than
 * 0x00 ... PROTOCOL_ERROR"; "A SETTINGS frame with a length other than a multiple of 6 octets MUST
 * be treated as a connection error of type FRAME_SIZE_ERROR." */
static void bad_frame(struct rfc *c, const void *arg)
{
    const struct shape *t = arg;
    snprintf(c->what, sizeof c->what, "SETTINGS of %u, flags %u, on %u: ", t->n, t->flags, t->id);
    rfc_hello(c);
    rfc_go(c);
    rfc_say_zeros(c, RFC_SETTINGS, t->flags, t->id, t->n);
    rfc_go(c);
    rfc_expect_over(c, t->codes);
    RFC_CHECK(c, c->n_acks == 1, "it is acknowledged");
}

Test(h2_rfc9113_settings, shapes)
{
    static const struct shape shapes[] = {
        {6, RFC_ACK, 0, RFC_E_SIZE},     {1, RFC_ACK, 0, RFC_E_SIZE}, {1, 0, 0, RFC_E_SIZE},
        {5, 0, 0, RFC_E_SIZE},           {7, 0, 0, RFC_E_SIZE},       {16384, 0, 0, RFC_E_SIZE},
        {0, 0, 1, RFC_E_PROTOCOL},       {6, 0, 1, RFC_E_PROTOCOL},   {6, 0, 2, RFC_E_PROTOCOL},
        {0, RFC_ACK, 1, RFC_E_PROTOCOL},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(shapes); i++)
        rfc_every_way(bad_frame, &shapes[i]);
}

/* 6.5.3: "the recipient MUST immediately emit a SETTINGS frame with the ACK flag set", one each. */
RFC_CASE(h2_rfc9113_settings, acks)
{
    rfc_hello(c);
    for (int i = 0; i < 20; i++)
        rfc_setting(c, RFC_MAX_CONCURRENT_STREAMS, (uint32_t)i);
    rfc_say(c, RFC_SETTINGS, 0, 0, NULL, 0);
    rfc_go(c);
    RFC_CHECK(c, c->n_acks == 22, "%u", c->n_acks);
    rfc_expect_alive(c);
}

/* More of it than were sent: no clause calls it an error, but it is none of a working client. */
RFC_CASE(h2_rfc9113_settings, ack_of_nothing)
{
    rfc_hello(c);
    rfc_go(c);
    rfc_say(c, RFC_SETTINGS, RFC_ACK, 0, NULL, 0);
    rfc_go(c);
    rfc_expect(c, 0, (struct rfc_may){.conn = RFC_E_PROTOCOL, .ignored = true});
}

/* Our settings are in force for the client with its ACK; the server does not wait for that. */
RFC_CASE(h2_rfc9113_settings, never_acked)
{
    rfc_magic(c);
    rfc_say(c, RFC_SETTINGS, 0, 0, NULL, 0);
    rfc_get(c, 1);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_expect_alive(c);
}

/* ---- 6.5.2 values ---- */

struct value {
    uint16_t id;
    uint32_t v, codes; /* 0: it is fine */
};

static void one_value(struct rfc *c, const void *arg)
{
    const struct value *t = arg;
    snprintf(c->what, sizeof c->what, "setting %u: %u: ", t->id, t->v);
    rfc_hello(c);
    rfc_setting(c, t->id, t->v);
    rfc_go(c);
    if (t->codes) {
        rfc_expect_over(c, t->codes);
        RFC_CHECK(c, c->n_acks == 1, "it is acknowledged");
        return;
    }
    RFC_CHECK(c, c->n_acks == 2, "%u ACKs", c->n_acks);
    rfc_expect_alive(c);
}

Test(h2_rfc9113_settings, values)
{
    static const struct value values[] = {
        {RFC_HEADER_TABLE_SIZE, 0, 0},
        {RFC_HEADER_TABLE_SIZE, 65536, 0},
        {RFC_HEADER_TABLE_SIZE, 0xffffffffu, 0},
        /* "Any value other than 0 or 1 MUST be treated as a connection error of type
         * PROTOCOL_ERROR." */
        {RFC_ENABLE_PUSH, 0, 0},
        {RFC_ENABLE_PUSH, 1, 0},
        {RFC_ENABLE_PUSH, 2, RFC_E_PROTOCOL},
        {RFC_ENABLE_PUSH, 0xffffffffu, RFC_E_PROTOCOL},
        {RFC_MAX_CONCURRENT_STREAMS, 0, 0},
        {RFC_MAX_CONCURRENT_STREAMS, 0xffffffffu, 0},
        /* "Values above the maximum flow-control window size of 2^31-1 MUST be treated as a
         * connection error of type FLOW_CONTROL_ERROR." */
        {RFC_INITIAL_WINDOW_SIZE, 0, 0},
        {RFC_INITIAL_WINDOW_SIZE, RFC_ID_MAX, 0},
        {RFC_INITIAL_WINDOW_SIZE, RFC_ID_MAX + 1, RFC_E_FLOW},
        {RFC_INITIAL_WINDOW_SIZE, 0xffffffffu, RFC_E_FLOW},
        /* "The value advertised by an endpoint MUST be between this initial value and the maximum
         * allowed frame size ... Values outside this range MUST be treated as a connection error of
         * type PROTOCOL_ERROR." */
        {RFC_MAX_FRAME_SIZE, 0, RFC_E_PROTOCOL},
        {RFC_MAX_FRAME_SIZE, 16383, RFC_E_PROTOCOL},
        {RFC_MAX_FRAME_SIZE, 16384, 0},
        {RFC_MAX_FRAME_SIZE, (1 << 24) - 1, 0},
        {RFC_MAX_FRAME_SIZE, 1 << 24, RFC_E_PROTOCOL},
        {RFC_MAX_FRAME_SIZE, 0xffffffffu, RFC_E_PROTOCOL},
        {RFC_MAX_HEADER_LIST_SIZE, 0, 0},
        {RFC_MAX_HEADER_LIST_SIZE, 0xffffffffu, 0},
        /* "An endpoint that receives a SETTINGS frame with any unknown or unsupported identifier
         * MUST ignore that setting." RFC 8441 3 is of clients that get it. */
        {0, 1, 0},
        {7, 0xffffffffu, 0},
        {10, 0, 0},
        {0x0a0a, 77, 0},
        {0xffff, 0xffffffffu, 0},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(values); i++)
        rfc_every_way(one_value, &values[i]);
}

/* RFC 9218 2.1: in the first SETTINGS frame 0 or 1, "any other value as a connection error of type
 * PROTOCOL_ERROR"; later it must not change. */
RFC_CASE(h2_rfc9113_settings, no_priorities_value)
{
    rfc_magic(c);
    rfc_setting(c, RFC_NO_PRIORITIES, 2);
    rfc_go(c);
    rfc_expect(c, 0, (struct rfc_may){.conn = RFC_E_PROTOCOL});
}

RFC_CASE(h2_rfc9113_settings, no_priorities_twice)
{
    rfc_magic(c);
    rfc_setting(c, RFC_NO_PRIORITIES, 1);
    rfc_setting(c, RFC_NO_PRIORITIES, 1);
    rfc_go(c);
    rfc_expect_alive(c);
}

RFC_CASE(h2_rfc9113_settings, no_priorities_change)
{
    rfc_magic(c);
    rfc_setting(c, RFC_NO_PRIORITIES, 1);
    rfc_setting(c, RFC_NO_PRIORITIES, 0);
    rfc_go(c);
    rfc_expect(c, 0, (struct rfc_may){.conn = RFC_E_PROTOCOL});
}

/* "values ... are processed in the order in which they appear": the last one counts, but each must
 * be good. */
RFC_CASE(h2_rfc9113_settings, same_twice)
{
    static const uint8_t twice[] = "\0\4\0\0\0\1"
                                   "\0\4\0\0\0\x40";
    rfc_hello(c);
    rfc_say(c, RFC_SETTINGS, 0, 0, twice, 12);
    rfc_get(c, 1);
    rfc_go(c);
    RFC_CHECK(c, rfc_stream(c, 1)->n_data == 64, "%d bytes", (int)rfc_stream(c, 1)->n_data);
    rfc_expect_alive(c);
}

RFC_CASE(h2_rfc9113_settings, bad_behind_good)
{
    static const uint8_t both[] = "\0\3\0\0\0\1"
                                  "\0\2\0\0\0\2"
                                  "\0\2\0\0\0\1";
    rfc_hello(c);
    rfc_say(c, RFC_SETTINGS, 0, 0, both, 18);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_PROTOCOL);
}

/* As many unknown settings as fit into a frame. The RFC has no limit, so only the server's own
 * limit may end the connection. */
RFC_CASE(h2_rfc9113_settings, many_in_a_frame)
{
    uint8_t p[6 * 20] = {0};
    for (size_t i = 0; i < sizeof p; i += 6) {
        p[i] = 0x7a;
        p[i + 1] = (uint8_t)i;
    }
    rfc_hello(c);
    rfc_say(c, RFC_SETTINGS, 0, 0, p, sizeof p);
    rfc_go(c);
    rfc_expect_alive(c);
}

/* ---- effects ---- */

/* MAX_FRAME_SIZE of the client: frames may be larger, and need not; the rig sees that none is too
 * large. */
RFC_CASE(h2_rfc9113_settings, frame_size_of_the_client)
{
    c->answer_bytes = 60000;
    rfc_hello(c);
    rfc_setting(c, RFC_MAX_FRAME_SIZE, 20000);
    rfc_get(c, 1);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    RFC_CHECK(c, rfc_stream(c, 1)->n_frames <= 4, "%u frames", rfc_stream(c, 1)->n_frames);
    rfc_setting(c, RFC_MAX_FRAME_SIZE, 16384);
    rfc_say32(c, RFC_WINDOW_UPDATE, 0, 100000);
    rfc_get(c, 3);
    rfc_go(c);
    rfc_expect_answer(c, 3);
    rfc_expect_alive(c);
}

/* HEADER_TABLE_SIZE of the client (RFC 7541 4.2): responses stay within it, and send a size update
 * after it shrank. The rig's decoder refuses other blocks. */
RFC_CASE(h2_rfc9113_settings, table_size_of_the_client)
{
    static const uint32_t sizes[] = {0, 4096, 100, 50, 0, 65536, 4096, 0};
    uint32_t id = 1;
    rfc_hello(c);
    for (size_t i = 0; i < NJ_ARRAY_LEN(sizes); i++) {
        rfc_setting(c, RFC_HEADER_TABLE_SIZE, sizes[i]);
        if (i == 3)
            continue; /* two changes before the next block (RFC 7541 4.2) */
        for (int k = 0; k < 3; k++, id += 2)
            rfc_get(c, id);
        rfc_go(c);
        for (uint32_t k = id - 6; k < id; k += 2)
            rfc_expect_answer(c, k);
    }
    rfc_expect_alive(c);
}

/* MAX_CONCURRENT_STREAMS of the client limits pushes; ENABLE_PUSH 1 causes none. */
RFC_CASE(h2_rfc9113_settings, limits_of_pushes)
{
    rfc_hello(c);
    rfc_setting(c, RFC_MAX_CONCURRENT_STREAMS, 0);
    rfc_setting(c, RFC_ENABLE_PUSH, 1);
    rfc_get(c, 1);
    rfc_get(c, 3);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_expect_answer(c, 3);
    rfc_expect_alive(c);
}

/* MAX_HEADER_LIST_SIZE of the client is advisory. A response of ordinary size is sent, or its
 * stream ends with an error. */
RFC_CASE(h2_rfc9113_settings, header_list_of_the_client)
{
    rfc_hello(c);
    rfc_setting(c, RFC_MAX_HEADER_LIST_SIZE, 10000);
    rfc_get(c, 1);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_expect_alive(c);
}
