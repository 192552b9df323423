/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parse IPv6 headers (RFC 8200). The walk over extension headers continues after an error that
 * needs a parameter problem, because an ICMPv6 error must not be sent in reply to an ICMPv6 error
 * (RFC 4443 2.4).
 */
#include "wire/ip6_parse.h"

#include <netinet/in.h>
#include <string.h>

#include <rte_ip.h>

#include "telem/counters_packet.h"
#include "wire/ip6.h"

#define OK NJ_COUNTERS_MAX

#define OPT_PAD1         0
#define OPT_ROUTER_ALERT 5

/* Codes of a parameter problem (RFC 4443 3.4). */
enum { BAD_FIELD = 0, UNKNOWN_HEADER = 1, UNKNOWN_OPTION = 2 };

struct ext_walk {
    const uint8_t *p;   /* the IPv6 header */
    uint32_t at, end;   /* offset of the next header, and of the packet's end */
    uint32_t next_at;   /* offset of the field with the type of that header */
    uint8_t next;       /* type of that header */
    bool to_multicast;  /* the packet went to a multicast address */
    bool notify_sender; /* send the sender a parameter problem */
    uint8_t code;       /* ... with this code */
    uint32_t pointer;   /* ... about this byte */
    nj_counter why;     /* the first problem */
    struct nj__ip6_payload *load;
};

static void problem(struct ext_walk *w, nj_counter why, bool notify_sender, uint8_t code,
                    uint32_t pointer)
{
    if (w->why != OK)
        return;
    w->why = why;
    w->notify_sender = notify_sender;
    w->code = code;
    w->pointer = pointer;
}

/* The two high bits of an unknown option select the action (RFC 8200 4.2). */
static void handle_unknown_option(struct ext_walk *w, uint8_t type, uint32_t at)
{
    static const bool notifies[] = {false, false, true, true};
    uint8_t action = type >> 6;

    if (action != 0)
        problem(w, NJ_C_drop_ip6_ext, notifies[action] && !(action == 3 && w->to_multicast),
                UNKNOWN_OPTION, at);
}

/* Parses the options between `at` and `end`. False if their lengths are invalid. */
static bool walk_options(struct ext_walk *w, uint32_t at, uint32_t end)
{
    while (at < end) {
        uint8_t type = w->p[at];
        if (type == OPT_PAD1) {
            at++;
            continue;
        }
        if (end - at < 2 || w->p[at + 1] > end - at - 2)
            return false;
        if (type == OPT_ROUTER_ALERT)
            w->load->router_alert = true;
        else
            handle_unknown_option(
                w, type, at); /* PadN (1) is skipped, like any option with these high bits */
        at += 2u + w->p[at + 1];
    }
    return true;
}

/* Skips the extension header at w->at. Its length is in the second byte, in units of 8 and without
 * the first 8; of a fragment header that byte is 0 (RFC 8200 4.5). */
static bool skip_ext_header(struct ext_walk *w)
{
    if (w->end - w->at < 8)
        return false;
    const uint8_t *h = w->p + w->at;
    uint32_t n_bytes = w->next == IPPROTO_FRAGMENT ? 8 : 8u * (h[1] + 1u);
    if (n_bytes > w->end - w->at)
        return false;

    switch (w->next) {
    case IPPROTO_ROUTING:
        /* A routing header without segments left is ignored. One with segments left requests
         * forwarding, by a type that hosts reject (RFC 5095 3, RFC 8200 4.4). */
        if (h[3] != 0)
            problem(w, NJ_C_drop_ip6_ext, !w->to_multicast, BAD_FIELD, w->at + 2);
        break;
    case IPPROTO_FRAGMENT:
        /* An atomic fragment is a whole packet (RFC 6946 4). */
        if (h[2] != 0 || (h[3] & 0xf9) != 0) {
            problem(w, NJ_C_drop_ip_fragment, false, 0, 0);
            w->notify_sender = false; /* the rest may be any part of a packet */
            w->next = IPPROTO_NONE;
            return true;
        }
        break;
    default:
        if (!walk_options(w, w->at + 2, w->at + n_bytes))
            return false;
        break;
    }
    w->next_at = w->at;
    w->next = h[0];
    w->at += n_bytes;
    return true;
}

static void walk_ext_headers(struct ext_walk *w)
{
    for (unsigned n = 0; n <= NJ__IP6_EXT_MAX; n++) {
        bool hop_by_hop = w->next == IPPROTO_HOPOPTS;
        if (hop_by_hop && n > 0) { /* allowed only as the first header (RFC 8200 4.1) */
            problem(w, NJ_C_drop_ip6_ext, !w->to_multicast, UNKNOWN_HEADER, w->next_at);
            return;
        }
        bool extension = hop_by_hop || w->next == IPPROTO_DSTOPTS || w->next == IPPROTO_ROUTING ||
                         w->next == IPPROTO_FRAGMENT;
        if (!extension)
            return;
        if (n == NJ__IP6_EXT_MAX || !skip_ext_header(w)) {
            w->notify_sender = false;
            problem(w, NJ_C_drop_ip6_ext, false, 0, 0);
            return;
        }
    }
}

/* Our own address, or a group that every host joins. Solicitations for a tentative address are
 * sent to its group. */
static bool is_own_destination(const struct nj_iface *iface, const struct nj_addr *dst)
{
    struct nj_addr all = nj_ip6_all_nodes();

    if (!nj_ip6_is_multicast(dst))
        return !nj_addr_is_v4(dst) && nj_iface_has_addr(iface, dst);
    if (nj_addr_eq(dst, &all))
        return true;
    for (unsigned i = 0; i < iface->n_addrs; i++) {
        struct nj_addr group = nj_ip6_solicited_node(&iface->addr[i].ip);
        if (!nj_addr_is_v4(&iface->addr[i].ip) && nj_addr_eq(dst, &group))
            return true;
    }
    return false;
}

/* RFC 4291 2.5.3, 2.7. IPv4-mapped addresses are rejected, since they identify connections of
 * IPv4. */
static bool is_valid_source(const struct nj_iface *iface, const struct nj_addr *src)
{
    return !nj_ip6_is_multicast(src) && !nj_ip6_is_loopback(src) && !nj_addr_is_v4(src) &&
           !nj_iface_has_addr(iface, src);
}

/* The unspecified source is allowed only in neighbour solicitations (RFC 4861 7.1.1). */
static bool unspecified_source_ok(const struct ext_walk *w)
{
    return w->next == IPPROTO_ICMPV6 && w->at < w->end && w->p[w->at] == 135;
}

/* An ICMPv6 error, or a message truncated before its type. */
static bool is_icmp6_error(const struct ext_walk *w)
{
    return w->next == IPPROTO_ICMPV6 && (w->at >= w->end || w->p[w->at] < 128);
}

static bool is_known_protocol(uint8_t protocol)
{
    return protocol == IPPROTO_TCP || protocol == IPPROTO_ICMPV6;
}

nj_counter nj__ip6_parse(const struct nj_iface *iface, const uint8_t *p, uint32_t n_bytes,
                         struct nj_packet *out, struct nj__ip6_payload *load)
{
    struct rte_ipv6_hdr h;

    if (n_bytes < sizeof h)
        return NJ_C_drop_ip_header;
    memcpy(&h, p, sizeof h);
    uint32_t vtc = rte_be_to_cpu_32(h.vtc_flow), payload = rte_be_to_cpu_16(h.payload_len);
    if (vtc >> 28 != 6 || payload > n_bytes - sizeof h || h.hop_limits == 0)
        return NJ_C_drop_ip_header;
    memcpy(out->ip_src.b, &h.src_addr, 16);
    memcpy(out->ip_dst.b, &h.dst_addr, 16);
    if (!is_own_destination(iface, &out->ip_dst))
        return NJ_C_drop_ip_dst;
    if (!is_valid_source(iface, &out->ip_src))
        return NJ_C_drop_ip_src;

    *load = (struct nj__ip6_payload){.hop_limit = h.hop_limits, .ecn = vtc >> 20 & NJ_ECN_CE};
    struct ext_walk w = {.p = p,
                         .at = sizeof h,
                         .end = (uint32_t)sizeof h + payload,
                         .next_at = offsetof(struct rte_ipv6_hdr, proto),
                         .next = h.proto,
                         .to_multicast = nj_ip6_is_multicast(&out->ip_dst),
                         .why = OK,
                         .load = load};
    walk_ext_headers(&w);
    bool anonymous = nj_ip6_is_unspecified(&out->ip_src);
    if (w.why == OK && anonymous && !unspecified_source_ok(&w))
        return NJ_C_drop_ip_src;
    if (w.why == OK && !is_known_protocol(w.next))
        problem(&w, NJ_C_drop_ip_protocol, !w.to_multicast && w.next != IPPROTO_NONE,
                UNKNOWN_HEADER, w.next_at);
    if (w.why != OK && w.notify_sender && !anonymous && !is_icmp6_error(&w)) {
        out->kind = NJ_PACKET_PARAM_PROBLEM;
        out->problem.off = 0;
        out->problem.n_bytes = w.end;
        out->problem.code = w.code;
        out->problem.pointer = w.pointer;
    }
    load->off = w.at;
    load->n_bytes = w.end - w.at;
    load->protocol = w.next;
    return w.why;
}
