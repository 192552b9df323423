/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/tls: a connection after its handshake; what it reads, writes and refuses. */
#include "tls_session_rig.h"

static void expect_error(struct nj_tls_input in, enum nj_tls_alert alert)
{
    cr_expect_eq(in.kind, NJ_TLS_IN_ERROR);
    cr_expect_eq(in.alert, alert, "%u", in.alert);
}

/* --- application data ------------------------------------------------------------------------ */

Test(tls_session, data_in)
{
    struct rig *r = rig_new();
    uint8_t data[16384];
    static const uint32_t sizes[] = {1, 2, 100, 1400, 16383, 16384};

    memset(data, 'x', sizeof data);
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(sizes); i++) {
        struct nj_tls_input in = rig_input(r, NJ_TLS_APPLICATION_DATA, data, sizes[i]);
        cr_expect(in.kind == NJ_TLS_IN_DATA && in.data == r->scratch && in.n_bytes == sizes[i]);
        cr_expect_eq(memcmp(in.data, data, sizes[i]), 0);
    }
    cr_expect_eq(r->s.read.record_number, NJ_ARRAY_LEN(sizes));
    rig_free(r);
}

/* The records that `n` bytes need, one by one. */
static uint32_t simple_sealed_bytes(const struct nj_tls_session *s, uint32_t n, uint32_t max)
{
    uint32_t sum = n > 0 && nj_tls_session_is_key_update_due(s) ? 5 + 5 + 1 + 16 : 0;

    max = nj_min_u32(max, s->record_size_limit - 1u);
    for (; n > 0; n -= nj_min_u32(n, max))
        sum += 5 + nj_min_u32(n, max) + 1 + 16;
    return sum;
}

static void check_output_sizes(struct rig *r, uint32_t record_max)
{
    for (uint32_t n = 0; n < 400; n++)
        cr_assert_eq(nj_tls_session_sealed_bytes(&r->s, n, record_max),
                     simple_sealed_bytes(&r->s, n, record_max));
    for (uint32_t n_room = 0; n_room < 500; n_room++) {
        uint32_t n = nj_tls_session_content_that_fits(&r->s, n_room, record_max);
        cr_assert_leq(nj_tls_session_sealed_bytes(&r->s, n, record_max), n_room);
        cr_assert_gt(nj_tls_session_sealed_bytes(&r->s, n + 1, record_max), n_room);
    }
}

Test(tls_session, output_sizes)
{
    static const uint32_t maxima[] = {1, 2, 63, 64, 100, 1400, 16384, 1000000};
    static const uint16_t limits[] = {64, 65, 512, NJ_TLS_RECORD_SIZE_LIMIT_MAX, UINT16_MAX};

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(limits); i++) {
        struct rig *r = rig_new_with(NJ_TLS_ENGINE_AUTO, NJ_TLS_AES_128_GCM_SHA256, limits[i]);
        for (uint32_t j = 0; j < NJ_ARRAY_LEN(maxima); j++) {
            struct nj_tls_input in = {0};
            check_output_sizes(r, maxima[j]);
            in = rig_key_update(r, 1);
            cr_assert(in.kind == NJ_TLS_IN_KEY_UPDATE && nj_tls_session_is_key_update_due(&r->s));
            check_output_sizes(r, maxima[j]);
            cr_assert_gt(rig_send_key_update(r), 0);
        }
        cr_expect_eq(nj_tls_session_content_that_fits(&r->s, UINT32_MAX, 16384),
                     NJ_TLS_SEAL_BYTES_MAX);
        rig_free(r);
    }
}

/* RFC 8449 4: the limit counts the type. No record is longer than the peer's limit or ours. */
Test(tls_session, record_sizes)
{
    static uint8_t data[40000];
    static const struct {
        uint16_t limit;
        uint32_t record_max, n_content;
    } cases[] = {{64, 16384, 63},       {1025, 16384, 1024},  {1025, 1024, 1024},
                 {1025, 1023, 1023},    {16385, 1400, 1400},  {16385, 1u << 20, 16384},
                 {65535, 20000, 16384}, {16384, 16384, 16383}};
    struct nj_prng prng = rig_prng(0x51e);

    rig_fill(&prng, data, sizeof data);
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(cases); i++) {
        struct rig *r = rig_new_with(NJ_TLS_ENGINE_AUTO, NJ_TLS_AES_256_GCM_SHA384, cases[i].limit);
        int n = rig_send(r, data, sizeof data, cases[i].record_max);
        cr_assert_eq(n, (int)nj_tls_session_sealed_bytes(&r->s, sizeof data, cases[i].record_max));
        for (uint32_t at = 0; at < sizeof data; at += cases[i].n_content)
            rig_expect_data(r, data + at, nj_min_u32(sizeof data - at, cases[i].n_content));
        cr_expect_eq(rig_next_record(r), 0);
        rig_free(r);
    }
}

Test(tls_session, no_room)
{
    struct rig *r = rig_new();
    uint8_t data[300] = {0};
    const struct nj_tls_src src[] = {{data, 100}, {data, 200}};
    uint32_t n = nj_tls_session_sealed_bytes(&r->s, 300, 120);
    struct nj_tls_dst dst[] = {{r->out, 3}, {r->out + 3, n - 4}};

    cr_expect_eq(nj_tls_session_seal(&r->s, &r->c, r->expanded, 120, src, 2, dst, 2),
                 NJ_TLS_NO_ROOM);
    cr_expect(r->s.write.record_number == 0 && r->out[0] == 0);
    dst[1].n_bytes++;
    cr_expect_eq(nj_tls_session_seal(&r->s, &r->c, r->expanded, 120, src, 2, dst, 2), (int)n);
    const struct nj_tls_src huge = {data, NJ_TLS_SEAL_BYTES_MAX + 1};
    cr_expect_eq(nj_tls_session_seal(&r->s, &r->c, r->expanded, 120, &huge, 1, dst, 2),
                 NJ_TLS_TOO_LONG);
    dst[0].n_bytes = NJ_TLS_KEY_UPDATE_RECORD_BYTES - 1;
    cr_expect_eq(nj_tls_session_write_key_update(&r->s, &r->c, r->expanded, dst, 1),
                 NJ_TLS_NO_ROOM);
    dst[0].n_bytes = NJ_TLS_ALERT_RECORD_BYTES - 1;
    cr_expect_eq(nj_tls_session_write_alert(&r->s, &r->c, r->expanded, 0, dst, 1), NJ_TLS_NO_ROOM);
    cr_expect_eq(r->s.write.record_number, 3);
    cr_expect_eq(rig_send(r, data, 0, 100), 0, "no data, no record");
    rig_free(r);
}

/* --- KeyUpdate ------------------------------------------------------------------------------- */

/* RFC 8446 4.6.3: the answer precedes the next data, is written with the old key, and is one for
 * several requests. */
Test(tls_session, key_update_requested)
{
    for (uint32_t i = 0; i < NJ_TLS_CIPHERS; i++) {
        struct rig *r =
            rig_new_with(NJ_TLS_ENGINE_AUTO, rig_ciphers[i], NJ_TLS_RECORD_SIZE_LIMIT_MAX);
        cr_assert_gt(rig_send(r, "before", 6, 1000), 0);
        for (uint32_t j = 0; j < 3; j++)
            cr_assert_eq(rig_key_update(r, 1).kind, NJ_TLS_IN_KEY_UPDATE);
        cr_assert_eq(rig_input(r, NJ_TLS_APPLICATION_DATA, "data", 4).kind, NJ_TLS_IN_DATA);
        cr_assert(nj_tls_session_is_key_update_due(&r->s));
        cr_assert_eq(rig_send(r, "after", 5, 3), 27 + 25 + 24);
        cr_assert_not(nj_tls_session_is_key_update_due(&r->s));
        cr_assert_eq(r->s.write.record_number, 2);
        rig_expect_data(r, "before", 6);
        cr_expect_eq(rig_expect_key_update(r), 0);
        rig_expect_data(r, "aft", 3);
        rig_expect_data(r, "er", 2);
        rig_free(r);
    }
}

Test(tls_session, key_update_not_requested)
{
    struct rig *r = rig_new();

    cr_assert_eq(rig_key_update(r, 0).kind, NJ_TLS_IN_KEY_UPDATE);
    cr_expect_not(nj_tls_session_is_key_update_due(&r->s));
    cr_assert_eq(rig_input(r, NJ_TLS_APPLICATION_DATA, "data", 4).kind, NJ_TLS_IN_DATA);
    rig_send(r, "x", 1, 1);
    rig_expect_data(r, "x", 1);
    /* Ours, at any time. */
    cr_expect_eq(rig_send_key_update(r), NJ_TLS_KEY_UPDATE_RECORD_BYTES);
    cr_expect_eq(rig_send_key_update(r), NJ_TLS_KEY_UPDATE_RECORD_BYTES);
    rig_send(r, "y", 1, 1);
    cr_expect(rig_expect_key_update(r) == 0 && rig_expect_key_update(r) == 0);
    rig_expect_data(r, "y", 1);
    rig_free(r);
}

/* The old key is not accepted after a KeyUpdate. */
Test(tls_session, old_key)
{
    struct rig *r = rig_new();
    struct nj_tls_keys old;

    cr_assert_eq(rig_input(r, NJ_TLS_APPLICATION_DATA, "data", 4).kind, NJ_TLS_IN_DATA);
    old = r->to_server;
    cr_assert_eq(rig_key_update(r, 0).kind, NJ_TLS_IN_KEY_UPDATE);
    cr_expect_eq(r->s.read.record_number, 0);
    old.record_number = 0;
    r->to_server = old;
    expect_error(rig_input(r, NJ_TLS_APPLICATION_DATA, "data", 4), NJ_TLS_BAD_RECORD_MAC);
    rig_free(r);
}

/* RFC 8446 5.5: our key has sealed many records, in the middle of data or before. */
Test(tls_session, key_update_for_the_limit)
{
    struct rig *r = rig_new();

    r->s.write.record_number = r->from_server.record_number = NJ_TLS_GCM_UPDATE_AT - 1;
    cr_expect_not(nj_tls_session_is_key_update_due(&r->s));
    rig_send(r, "x", 1, 1);
    cr_expect(nj_tls_session_is_key_update_due(&r->s));
    rig_send(r, "y", 1, 1);
    cr_expect_not(nj_tls_session_is_key_update_due(&r->s));
    cr_expect_eq(r->s.write.record_number, 1);
    rig_expect_data(r, "x", 1);
    cr_expect_eq(rig_expect_key_update(r), 0);
    rig_expect_data(r, "y", 1);
    rig_free(r);
}

/* The peer's key has sealed many records: it is asked once for another, until it has one. */
Test(tls_session, key_update_asked_for)
{
    struct rig *r = rig_new();

    for (uint32_t i = 0; i < 2; i++) {
        r->s.read.record_number = r->to_server.record_number = NJ_TLS_GCM_UPDATE_AT;
        cr_expect(nj_tls_session_is_key_update_due(&r->s));
        rig_send(r, "x", 1, 1);
        cr_expect_not(nj_tls_session_is_key_update_due(&r->s));
        cr_assert_eq(rig_input(r, NJ_TLS_APPLICATION_DATA, "data", 4).kind, NJ_TLS_IN_DATA);
        rig_send(r, "y", 1, 1);
        cr_expect_eq(rig_expect_key_update(r), 1);
        rig_expect_data(r, "x", 1);
        rig_expect_data(r, "y", 1);
        cr_assert_eq(rig_key_update(r, 0).kind, NJ_TLS_IN_KEY_UPDATE);
        cr_expect_not(nj_tls_session_is_key_update_due(&r->s));
    }
    rig_free(r);
}

/* Beyond the limit even a KeyUpdate is impossible: the connection ends. */
Test(tls_session, key_used_up)
{
    struct rig *r = rig_new();

    r->s.write.record_number = NJ_TLS_GCM_RECORDS_MAX;
    cr_expect_eq(rig_send(r, "x", 1, 1), NJ_TLS_KEY_USED_UP);
    cr_expect_eq(rig_send(r, "x", 1, 1), NJ_TLS_CLOSED);
    cr_expect_eq(rig_send_key_update(r), NJ_TLS_CLOSED);
    rig_free(r);
}

static void expect_flood(struct nj_tls_input in)
{
    expect_error(in, NJ_TLS_UNEXPECTED_MESSAGE);
    cr_expect(in.is_flood);
}

/* Empty records and user_canceled. */
Test(tls_session, floods_without_data)
{
    for (uint32_t kind = 0; kind < 2; kind++) {
        struct rig *r = rig_new();
        for (uint32_t turn = 0; turn < 3; turn++) {
            for (uint32_t i = 0; i < NJ_TLS_IDLE_RECORDS_MAX; i++) {
                struct nj_tls_input in = kind == 0 ? rig_input(r, NJ_TLS_APPLICATION_DATA, "", 0)
                                                   : rig_input(r, NJ_TLS_ALERT, "\1\x5a", 2);
                cr_assert_eq(in.kind, NJ_TLS_IN_NOTHING);
            }
            if (turn < 2)
                nj_tls_session_forgive(&r->s);
        }
        expect_flood(kind == 0 ? rig_input(r, NJ_TLS_ALERT, "\1\x5a", 2)
                               : rig_input(r, NJ_TLS_APPLICATION_DATA, "", 0));
        nj_tls_session_forgive(&r->s);
        cr_expect_eq(rig_input(r, NJ_TLS_APPLICATION_DATA, "x", 1).kind, NJ_TLS_IN_NOTHING);
        rig_free(r);
    }
}

/* Some at once, and then one per second. Neither data nor what forgives empty records changes that.
 */
Test(tls_session, flood_of_key_updates)
{
    struct rig *r = rig_new();

    r->now = 1000 * NJ_SEC;
    for (uint32_t i = 0; i < NJ_TLS_KEY_UPDATES_MAX + 100; i++) {
        if (i >= NJ_TLS_KEY_UPDATES_MAX)
            r->now += NJ_TLS_KEY_UPDATE_TIME;
        cr_assert_eq(rig_key_update(r, 1).kind, NJ_TLS_IN_KEY_UPDATE, "%u", i);
        cr_assert_eq(rig_input(r, NJ_TLS_APPLICATION_DATA, "x", 1).kind, NJ_TLS_IN_DATA);
        nj_tls_session_forgive(&r->s);
    }
    r->now += NJ_TLS_KEY_UPDATE_TIME - 1;
    expect_flood(rig_key_update(r, 1));
    rig_free(r);
}

/* Time without KeyUpdates saves no more than those that are accepted at once. */
Test(tls_session, key_updates_after_a_pause)
{
    struct rig *r = rig_new();

    for (uint32_t turn = 0; turn < 2; turn++) {
        r->now += 3600 * NJ_SEC;
        for (uint32_t i = 0; i < NJ_TLS_KEY_UPDATES_MAX; i++)
            cr_assert_eq(rig_key_update(r, 0).kind, NJ_TLS_IN_KEY_UPDATE);
    }
    expect_flood(rig_key_update(r, 0));
    rig_free(r);
}

/* --- handshake messages ---------------------------------------------------------------------- */

/* RFC 8446 5.1: a message may be split over records, of any sizes but 0. */
Test(tls_session, key_update_split)
{
    const uint8_t message[5] = {24, 0, 0, 1, 1};

    for (uint32_t cuts = 0; cuts < 16; cuts++) {
        struct rig *r = rig_new();
        struct nj_tls_input in = {0};
        for (uint32_t from = 0, to = 1; to <= 5; to++) {
            if (to < 5 && !(cuts & 1u << (to - 1)))
                continue;
            in = rig_input(r, NJ_TLS_HANDSHAKE, message + from, to - from);
            cr_assert_eq(in.kind, to == 5 ? NJ_TLS_IN_KEY_UPDATE : NJ_TLS_IN_NOTHING);
            cr_assert_eq(nj_tls_session_is_key_update_due(&r->s), to == 5);
            from = to;
        }
        rig_client_updates(r);
        cr_expect_eq(rig_input(r, NJ_TLS_APPLICATION_DATA, "data", 4).kind, NJ_TLS_IN_DATA);
        cr_expect_eq(rig_key_update(r, 0).kind, NJ_TLS_IN_KEY_UPDATE);
        rig_free(r);
    }
}

/* RFC 8446 5.1: no other record within a message, and nothing after it in its record, since the key
 * changes. */
Test(tls_session, key_update_interleaved_or_coalesced)
{
    static const struct {
        enum nj_tls_content_type type;
        uint8_t content[10];
        uint32_t n_first, n;
    } cases[] = {
        {NJ_TLS_APPLICATION_DATA, {24, 0, 0, 'x'}, 3, 4},
        {NJ_TLS_APPLICATION_DATA, {24, 0, 0, 1}, 4, 4}, /* an empty one */
        {NJ_TLS_ALERT, {24, 1, 0}, 1, 3},
        {NJ_TLS_HANDSHAKE, {24, 0}, 2, 2},
        {NJ_TLS_HANDSHAKE, {24, 0, 0, 1, 0, 24}, 0, 6},
        {NJ_TLS_HANDSHAKE, {24, 0, 0, 1, 0, 24, 0, 0, 1, 0}, 0, 10},
        {NJ_TLS_HANDSHAKE, {24, 0, 0, 1, 0, 24, 0, 0, 1, 0}, 4, 10},
    };

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(cases); i++) {
        struct rig *r = rig_new();
        if (cases[i].n_first > 0)
            cr_expect_eq(rig_input(r, NJ_TLS_HANDSHAKE, cases[i].content, cases[i].n_first).kind,
                         NJ_TLS_IN_NOTHING);
        expect_error(rig_input(r, cases[i].type, cases[i].content + cases[i].n_first,
                               cases[i].n - cases[i].n_first),
                     NJ_TLS_UNEXPECTED_MESSAGE);
        rig_free(r);
    }
}

static void expect_handshake_error(const char *content, uint32_t n, enum nj_tls_alert alert)
{
    struct rig *r = rig_new();

    expect_error(rig_input(r, NJ_TLS_HANDSHAKE, content, n), alert);
    cr_expect(nj_tls_session_is_read_closed(&r->s) && !nj_tls_session_is_write_closed(&r->s));
    cr_expect_eq(rig_send_alert(r, alert), NJ_TLS_ALERT_RECORD_BYTES);
    cr_assert_eq(rig_next_record(r), NJ_TLS_ALERT);
    cr_expect(r->opened.n_bytes == 2 && r->content[0] == 2 && r->content[1] == alert);
    rig_free(r);
}

Test(tls_session, other_handshake_messages)
{
    for (int type = 0; type < 256; type++) {
        const char content[] = {(char)type, 0, 0, 1, 0};
        if (type != 24)
            expect_handshake_error(content, sizeof content, NJ_TLS_UNEXPECTED_MESSAGE);
    }
    expect_handshake_error("", 0, NJ_TLS_UNEXPECTED_MESSAGE);
    expect_handshake_error("\x18\0\0\0", 4, NJ_TLS_DECODE_ERROR);
    expect_handshake_error("\x18\0\0\2\0\0", 6, NJ_TLS_DECODE_ERROR);
    expect_handshake_error("\x18\1", 2, NJ_TLS_DECODE_ERROR);
    expect_handshake_error("\x18\0\0\1\2", 5, NJ_TLS_ILLEGAL_PARAMETER);
    expect_handshake_error("\x18\0\0\1\xff", 5, NJ_TLS_ILLEGAL_PARAMETER);
}

/* --- alerts and the end ---------------------------------------------------------------------- */

Test(tls_session, close_notify)
{
    struct rig *r = rig_new();

    cr_expect_eq(rig_input(r, NJ_TLS_ALERT, "\2\x5a", 2).kind, NJ_TLS_IN_NOTHING,
                 "user_canceled of Java's clients");
    cr_expect_eq(rig_input(r, NJ_TLS_ALERT, "\1\0", 2).kind, NJ_TLS_IN_CLOSE_NOTIFY);
    cr_expect(nj_tls_session_is_read_closed(&r->s) && !nj_tls_session_is_write_closed(&r->s));
    cr_expect_eq(rig_input(r, NJ_TLS_APPLICATION_DATA, "x", 1).kind, NJ_TLS_IN_NOTHING, "6.1");
    cr_expect_eq(rig_send(r, "y", 1, 1), 23, "the other direction is open");
    cr_expect_eq(rig_send_alert(r, NJ_TLS_CLOSE_NOTIFY), NJ_TLS_ALERT_RECORD_BYTES);
    cr_expect(nj_tls_session_is_write_closed(&r->s));
    cr_expect_eq(rig_send(r, "y", 1, 1), NJ_TLS_CLOSED);
    cr_expect_eq(rig_send_alert(r, NJ_TLS_CLOSE_NOTIFY), NJ_TLS_CLOSED);
    cr_expect_eq(rig_send_key_update(r), NJ_TLS_CLOSED);
    rig_expect_data(r, "y", 1);
    cr_assert_eq(rig_next_record(r), NJ_TLS_ALERT);
    cr_expect(r->content[0] == 1 && r->content[1] == 0);
    rig_free(r);
}

/* Ours first: the peer's data is still read, and no KeyUpdate is due. */
Test(tls_session, close_notify_of_ours)
{
    struct rig *r = rig_new();

    cr_expect_gt(rig_send_alert(r, NJ_TLS_CLOSE_NOTIFY), 0);
    cr_expect_eq(rig_input(r, NJ_TLS_APPLICATION_DATA, "x", 1).kind, NJ_TLS_IN_DATA);
    cr_expect_eq(rig_key_update(r, 1).kind, NJ_TLS_IN_KEY_UPDATE);
    cr_expect_not(nj_tls_session_is_key_update_due(&r->s));
    cr_expect_eq(rig_input(r, NJ_TLS_ALERT, "\1\0", 2).kind, NJ_TLS_IN_CLOSE_NOTIFY);
    rig_free(r);
}

/* RFC 8446 6.2: the level is ignored, and an unknown alert is an error, too. */
Test(tls_session, peer_alerts)
{
    for (int alert = 1; alert < 256; alert++) {
        struct rig *r = rig_new();
        const uint8_t content[2] = {(uint8_t)(alert % 4), (uint8_t)alert};
        struct nj_tls_input in = rig_input(r, NJ_TLS_ALERT, content, 2);
        if (alert != NJ_TLS_USER_CANCELED) {
            cr_expect(in.kind == NJ_TLS_IN_PEER_ALERT && in.alert == alert);
            cr_expect_eq(rig_send(r, "y", 1, 1), NJ_TLS_CLOSED);
            cr_expect_eq(rig_input(r, NJ_TLS_APPLICATION_DATA, "x", 1).kind, NJ_TLS_IN_NOTHING);
        }
        rig_free(r);
    }
}

Test(tls_session, malformed_alerts)
{
    static const struct {
        uint32_t n;
        enum nj_tls_alert alert;
    } cases[] = {{0, NJ_TLS_UNEXPECTED_MESSAGE},
                 {1, NJ_TLS_DECODE_ERROR},
                 {3, NJ_TLS_DECODE_ERROR},
                 {4, NJ_TLS_DECODE_ERROR}};

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(cases); i++) {
        struct rig *r = rig_new();
        expect_error(rig_input(r, NJ_TLS_ALERT, "\1\0\1\0", cases[i].n), cases[i].alert);
        rig_free(r);
    }
}

/* Records without protection, among them a ChangeCipherSpec (RFC 8446 5), and one that is not
 * authentic. */
Test(tls_session, unprotected_records)
{
    static const uint8_t records[][7] = {
        {20, 3, 3, 0, 1, 1}, {21, 3, 3, 0, 2, 1, 0}, {22, 3, 3, 0, 2, 24, 0}, {24, 3, 3, 0, 2}};

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(records); i++) {
        struct rig *r = rig_new();
        memcpy(r->record, records[i], 7);
        expect_error(rig_input_raw(r, 5u + records[i][4]), NJ_TLS_UNEXPECTED_MESSAGE);
        rig_free(r);
    }
    struct rig *r = rig_new();
    memcpy(r->record, "\x17\3\3\0\x20", 5);
    expect_error(rig_input_raw(r, 37), NJ_TLS_BAD_RECORD_MAC);
    cr_expect_eq(rig_send_alert(r, NJ_TLS_BAD_RECORD_MAC), NJ_TLS_ALERT_RECORD_BYTES);
    rig_free(r);
}

Test(tls_session, wipe)
{
    struct rig *r = rig_new();

    nj_tls_session_wipe(&r->s);
    for (uint32_t i = 0; i < sizeof r->s; i++)
        cr_expect(((uint8_t *)&r->s)[i] == 0 || &((uint8_t *)&r->s)[i] == &r->s.flags);
    cr_expect_eq(rig_send(r, "y", 1, 1), NJ_TLS_CLOSED);
    cr_expect_eq(rig_send_alert(r, NJ_TLS_CLOSE_NOTIFY), NJ_TLS_CLOSED);
    cr_expect_eq(rig_input(r, NJ_TLS_APPLICATION_DATA, "x", 1).kind, NJ_TLS_IN_NOTHING);
    cr_expect_not(nj_tls_session_is_key_update_due(&r->s));
    rig_free(r);
}
