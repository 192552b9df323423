/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts the acts against clients per reason and records the client that caused most of them. The
 * client is found by the majority algorithm of Boyer and Moore, and read through a seqlock. */
#include "conn/abuse_reason_counts.h"

#include <string.h>

#include "base/relaxed_atomics.h"
#include "conn/conns.h"
#include "telem/counters_conn.h"
#include "telem/counters_http.h"
#include "telem/counters_tcp.h"

#define READ_RETRIES 8u /* reads retried while the writer keeps writing */

bool nj_abuse_is_refusal(nj_counter reason)
{
    static const bool is_refusal[NJ_COUNTERS_MAX] = {
        [NJ_C_drop_tcp_denied] = true,
        [NJ_C_conn_denied] = true,
        [NJ_C_conn_http1] = true,
        [NJ_C_conn_proxy_malformed] = true,
        [NJ_C_conn_proxy_missing] = true,
        [NJ_C_conn_proxy_timeout] = true,
        [NJ_C_conn_proxy_untrusted] = true,
        [NJ_C_conn_unknown] = true,
        [NJ_C_h1_chunk] = true,
        [NJ_C_h1_coding] = true,
        [NJ_C_h1_field_name] = true,
        [NJ_C_h1_field_value] = true,
        [NJ_C_h1_head_full] = true,
        [NJ_C_h1_head_timeout] = true,
        [NJ_C_h1_host] = true,
        [NJ_C_h1_length] = true,
        [NJ_C_h1_length_conflict] = true,
        [NJ_C_h1_line_end] = true,
        [NJ_C_h1_request_line] = true,
        [NJ_C_h1_target] = true,
        [NJ_C_h1_target_long] = true,
        [NJ_C_h1_version] = true,
        [NJ_C_h2_error] = true,
        [NJ_C_h2_header_full] = true,
        [NJ_C_h2_streams_full] = true,
        [NJ_C_request_contradictory] = true,
        [NJ_C_request_expectation] = true,
        [NJ_C_request_malformed] = true,
        [NJ_C_request_no_host] = true,
        [NJ_C_tls_bad_record] = true,
        [NJ_C_tls_failed_alert] = true,
        [NJ_C_tls_failed_alpn] = true,
        [NJ_C_tls_failed_client_cert] = true,
        [NJ_C_tls_failed_closed] = true,
        [NJ_C_tls_failed_memory] = true,
        [NJ_C_tls_failed_message] = true,
        [NJ_C_tls_failed_negotiation] = true,
        [NJ_C_tls_failed_version] = true,
        [NJ_C_tls_handshakes_full] = true,
        [NJ_C_tls_peer_alert] = true,
    };

    return is_refusal[reason];
}

/* Each store of the address releases the odd version, and the even version releases the address. A
 * reader that acquires them, and then sees the same even version as before, has therefore read one
 * address. A seq_cst store would cost more than all the rest. */
static void set_client(struct nj_abuse_slot *slot, const uint64_t addr[2])
{
    uint32_t version = atomic_load_explicit(&slot->version, memory_order_relaxed);

    atomic_store_explicit(&slot->version, version + 1, memory_order_relaxed);
    atomic_store_explicit(&slot->addr[0], addr[0], memory_order_release);
    atomic_store_explicit(&slot->addr[1], addr[1], memory_order_release);
    atomic_store_explicit(&slot->version, version + 2, memory_order_release);
}

/* Boyer and Moore: a client that caused over half of a second's acts is the recorded one at the end
 * of that second. */
static void majority_vote(struct nj_abuse_slot *slot, const struct nj_addr *client, uint32_t second)
{
    uint32_t weight = nj_load_relaxed(&slot->weight);
    uint64_t addr[2];

    memcpy(addr, client->b, sizeof addr);
    if (second != nj_load_relaxed(&slot->second)) {
        nj_store_relaxed(&slot->second, second);
        nj_store_relaxed(&slot->others, false);
        weight = 0;
    }
    bool same =
        addr[0] == nj_load_relaxed(&slot->addr[0]) && addr[1] == nj_load_relaxed(&slot->addr[1]);
    if (weight > 0 && !same)
        nj_store_relaxed(&slot->others, true);
    if (weight == 0 && !same)
        set_client(slot, addr);
    nj_store_relaxed(&slot->weight, weight == 0 || same ? weight + 1 : weight - 1);
}

static void increment(_Atomic uint64_t *n)
{
    uint64_t old = nj_load_relaxed(n);
    atomic_store_explicit(n, old + 1, memory_order_release);
}

void nj__abuse_attribute(struct nj_conns *cs, nj_counter reason, const struct nj_addr *client)
{
    struct nj_abuse_slot *slot = &cs->abuse.slot[reason];

    majority_vote(slot, client, (uint32_t)(cs->now / NJ_SEC));
    increment(&slot->n);
    increment(&cs->abuse.n);
}

void nj__abuse_record(struct nj_conns *cs, nj_counter reason, const struct nj_addr *client)
{
    nj_count(cs->counters, reason);
    nj__abuse_attribute(cs, reason, client);
}

uint64_t nj_abuse_get_count(const struct nj_abuse *a, nj_counter reason)
{
    return atomic_load_explicit(&a->slot[reason].n, memory_order_acquire);
}

bool nj_abuse_get_count_and_client(const struct nj_abuse *a, nj_counter reason,
                                   struct nj_abuse_view *out)
{
    const struct nj_abuse_slot *slot = &a->slot[reason];

    out->n = nj_abuse_get_count(a, reason);
    for (uint32_t i = 0; out->n > 0 && i < READ_RETRIES; i++) {
        uint32_t version = atomic_load_explicit(&slot->version, memory_order_acquire);
        uint64_t addr[2] = {atomic_load_explicit(&slot->addr[0], memory_order_acquire),
                            atomic_load_explicit(&slot->addr[1], memory_order_acquire)};
        if (version % 2 != 0 || nj_load_relaxed(&slot->version) != version)
            continue;
        memcpy(out->client.b, addr, sizeof addr);
        out->second = nj_load_relaxed(&slot->second);
        out->weight = nj_load_relaxed(&slot->weight);
        out->others = nj_load_relaxed(&slot->others);
        return true;
    }
    return false;
}
