/* SPDX-License-Identifier: BSD-3-Clause */
/* Classifies requests by the rules of a policy, the first match wins, and identifies the client by
 * address, header (RFC 7239) or cookie (RFC 6265). Keys of clients are keyed hashes. */
#include "shape/request_policy.h"

#include <string.h>

#include "base/compiler.h"
#include "base/request_host.h"
#include "shape/forwarded_header.h"

const struct nj_policy nj_policy_none = {
    .version = 1,
    .n_classes = 1,
    .classes = {{.name = "default"}},
    .client_bits4 = 32,
    .client_bits6 = 64,
};

/* Input of the hash that identifies a client. */
struct key_parts {
    union {
        struct nj_addr net;
        uint64_t value[2]; /* hash of a field's value, and 0 */
    };
    uint64_t kind;
};

enum { KEY_CONNS, KEY_ADDRESS, KEY_FIELD };

/* --- matching rules ------------------------------------------------------------------------- */

static const struct nj_field *find_field(const struct nj_policy_request *req, struct nj_str name,
                                         uint32_t from)
{
    const struct nj_request_head *head = req->head;

    if (from >= head->n_fields)
        return NULL;
    return nj_field_find(head->fields + from, head->n_fields - from, name);
}

/* A request during matching, with values computed once. */
struct match_input {
    const struct nj_policy *p;
    const struct nj_policy_request *req;
    uint32_t lists;
    struct nj_str host;
};

static uint32_t lists_of(const struct nj_policy *p, const struct nj_addr *addr)
{
    return p->lists ? p->lists(p->lists_ctx, addr) : 0;
}

static bool header_matches(const struct match_input *a, const struct nj_class_rule *r)
{
    const struct nj_field *f = find_field(a->req, r->header, 0);

    while (f && r->value.n_bytes > 0 && !nj_str_eq(f->value, r->value))
        f = find_field(a->req, r->header, (uint32_t)(f - a->req->head->fields) + 1);
    return f != NULL;
}

static bool subject_matches(const struct nj_str *subject, struct nj_str wanted)
{
    return subject && (nj_str_eq(wanted, NJ_STR("*")) || nj_str_eq(*subject, wanted));
}

static bool rule_matches(const struct match_input *a, const struct nj_class_rule *r)
{
    if (r->lists && !(a->lists & r->lists))
        return false;
    if (r->path_prefix.n_bytes > 0 && !nj_str_starts_with(a->req->path, r->path_prefix))
        return false;
    if (r->host.n_bytes > 0 && !nj_str_eq_nocase(a->host, r->host))
        return false;
    if (r->subject.n_bytes > 0 && !subject_matches(a->req->subject, r->subject))
        return false;
    return r->header.n_bytes == 0 || header_matches(a, r);
}

/* --- clients -------------------------------------------------------------------------------- */

/* The value of a cookie, in any of the Cookie fields (RFC 6265 4.2.1, RFC 9113 8.2.3). */
static struct nj_str cookie_in(struct nj_str line, struct nj_str name)
{
    while (line.n_bytes > 0) {
        const char *semi = memchr(line.p, ';', line.n_bytes);
        uint32_t n = semi ? (uint32_t)(semi - line.p) : line.n_bytes;
        struct nj_str pair = nj_str_trim((struct nj_str){line.p, n});
        if (pair.n_bytes > name.n_bytes && pair.p[name.n_bytes] == '=' &&
            memcmp(pair.p, name.p, name.n_bytes) == 0)
            return (struct nj_str){pair.p + name.n_bytes + 1, pair.n_bytes - name.n_bytes - 1};
        line.p += n + (semi != NULL);
        line.n_bytes -= n + (semi != NULL);
    }
    return (struct nj_str){NULL, 0};
}

static struct nj_str client_value(const struct nj_policy *p, const struct nj_policy_request *req)
{
    const struct nj_str cookie = NJ_STR_INIT("cookie");
    const struct nj_field *f;

    if (p->client_by == NJ_CLIENT_BY_HEADER) {
        f = find_field(req, p->client_field, 0);
        return f ? f->value : (struct nj_str){NULL, 0};
    }
    for (uint32_t i = 0; (f = find_field(req, cookie, i));
         i = (uint32_t)(f - req->head->fields) + 1) {
        struct nj_str v = cookie_in(f->value, p->client_field);
        if (v.n_bytes > 0)
            return v;
    }
    return (struct nj_str){NULL, 0};
}

static struct nj_addr client_network(const struct nj_policy *p, const struct nj_addr *addr)
{
    unsigned bits = nj_addr_is_v4(addr) ? 96u + p->client_bits4 : p->client_bits6;
    return nj_addr_network(addr, bits);
}

static uint64_t make_key(const struct nj_hash_key *key, const struct key_parts *parts)
{
    uint64_t k = nj_hash(key, parts, sizeof *parts);
    return k ? k : 1;
}

uint64_t nj_policy_conn_key(const struct nj_policy *p, const struct nj_hash_key *key,
                            const struct nj_addr *addr)
{
    return make_key(key, &(struct key_parts){.net = client_network(p, addr), .kind = KEY_CONNS});
}

bool nj_policy_trusts(const struct nj_policy *p, const struct nj_addr *addr)
{
    return p->trusted && (lists_of(p, addr) & p->trusted);
}

/* May the fields of this request name its client? A cookie belongs to the client. A header counts
 * only from a trusted proxy, if any are configured. */
static bool may_name_client(const struct match_input *a)
{
    const struct nj_policy *p = a->p;

    if (p->client_by == NJ_CLIENT_BY_HEADER && p->trusted)
        return a->lists & p->trusted;
    return p->client_by != NJ_CLIENT_BY_ADDRESS;
}

/* The rightmost address in the field of the proxies that is no trusted proxy's; if all are, or the
 * next one can't be read, the last one. False: there is none. */
static bool find_forwarded_client(const struct nj_policy *p, struct nj_forwarded *walk,
                                  struct nj_addr *out)
{
    struct nj_addr addr;
    bool found = false;

    while (nj_forwarded_next(walk, &addr)) {
        *out = addr;
        found = true;
        if (!nj_policy_trusts(p, &addr))
            break;
    }
    return found;
}

/* The previous key is often the same: proxies and busy clients send many requests. */
static uint64_t address_key(const struct match_input *a, const struct nj_hash_key *key,
                            const struct nj_addr *client)
{
    uint32_t bits = (uint32_t)a->p->client_bits4 << 8 | a->p->client_bits6;
    struct nj_policy_memo *memo = a->req->memo;

    if (nj_likely(memo && memo->key && memo->bits == bits && nj_addr_eq(&memo->addr, client)))
        return memo->key;
    struct key_parts parts = {.net = client_network(a->p, client), .kind = KEY_ADDRESS};
    uint64_t k = make_key(key, &parts);
    if (memo)
        *memo = (struct nj_policy_memo){.addr = *client, .bits = bits, .key = k};
    return k;
}

/* --- blocked networks ----------------------------------------------------------------------- */

void nj_blocked_nets_add(struct nj_blocked_nets *b, const struct nj_net *net)
{
    static const struct nj_addr ones = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                         0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
    struct nj_addr mask = nj_addr_network(&ones, net->bits);
    uint32_t i = b->n++;

    memcpy(b->net[i].addr, &net->addr, sizeof b->net[i].addr);
    memcpy(b->net[i].mask, &mask, sizeof b->net[i].mask);
}

bool nj_policy_blocks(const struct nj_policy *p, const struct nj_addr *client)
{
    const struct nj_blocked_nets *b = p->blocked;
    uint64_t a[2];

    if (nj_likely(!b))
        return false;
    memcpy(a, client, sizeof a);
    for (uint32_t i = 0; i < b->n; i++)
        if ((a[0] & b->net[i].mask[0]) == b->net[i].addr[0] &&
            (a[1] & b->net[i].mask[1]) == b->net[i].addr[1])
            return true;
    return false;
}

/* RFC 7239: one field for all that proxies tell. */
static bool is_by_forwarded(const struct nj_policy *p)
{
    return p->client_by == NJ_CLIENT_BY_HEADER && nj_str_eq(p->client_field, NJ_STR("forwarded"));
}

/* The field of the proxies has addresses, and may have the scheme. The last element that was
 * examined is a trusted proxy's. */
static bool read_forwarded(const struct match_input *a, struct nj_policy_verdict *out)
{
    const struct nj_request_head *head = a->req->head;
    struct nj_forwarded walk = {
        .head = head, .name = a->p->client_field, .n_lines_left = head->n_fields};
    bool found = find_forwarded_client(a->p, &walk, &out->client);

    if (is_by_forwarded(a->p))
        out->scheme = (uint8_t)nj_forwarded_proto(walk.element);
    if (found && nj_policy_blocks(a->p, &out->client)) /* its connection is the proxy's */
        out->action = NJ_ACTION_FORBID;
    return found;
}

/* Sets the fields of *out that identify the client. */
static void find_client(const struct match_input *a, const struct nj_hash_key *key,
                        struct nj_policy_verdict *out)
{
    struct key_parts parts = {.kind = KEY_FIELD};
    bool named = false;

    out->client = *a->req->addr;
    out->scheme = NJ_SCHEME_NONE;
    if (nj_unlikely(a->lists & a->p->trusted) && !is_by_forwarded(a->p))
        out->scheme = (uint8_t)nj_x_forwarded_proto(a->req->head);
    if (may_name_client(a)) {
        struct nj_str v = {NULL, 0};
        if (a->p->client_by == NJ_CLIENT_BY_HEADER && a->p->trusted &&
            nj_forwarded_is_name(a->p->client_field))
            named = read_forwarded(a, out);
        else
            v = client_value(a->p, a->req);
        if (v.n_bytes > 0) {
            parts.value[0] = nj_hash(key, v.p, v.n_bytes);
            out->client_hash = make_key(key, &parts);
            out->client_unknown = false;
            return;
        }
    }
    out->client_hash = address_key(a, key, &out->client);
    out->client_unknown = !named && (a->lists & a->p->trusted);
}

/* The key without a class is secret because the hash is keyed, so collisions of keys in a class
 * cannot be predicted either. The finalizer of SplitMix64 spreads the few bits of the class over
 * the whole key. */
uint64_t nj_policy_client_key_in_class(uint64_t client_hash, const struct nj_class *c)
{
    uint64_t x = (uint64_t)c->slot_gen << 8 | c->slot;

    if (x == 0)
        return client_hash;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    x ^= x >> 31 ^ client_hash;
    return x ? x : 1;
}

/* --- verdicts ------------------------------------------------------------------------------- */

static bool is_refused(const struct nj_policy *p, uint32_t lists)
{
    return (p->deny & lists) || (p->allow_only && !(p->allow & lists));
}

static bool is_conn_action(enum nj_action a)
{
    return a == NJ_ACTION_DROP || a == NJ_ACTION_RESET;
}

/* Can the rule be decided by the address alone? */
static bool is_address_only(const struct nj_class_rule *r)
{
    return r->path_prefix.n_bytes == 0 && r->host.n_bytes == 0 && r->header.n_bytes == 0 &&
           r->subject.n_bytes == 0;
}

bool nj_policy_filters_conns(const struct nj_policy *p)
{
    if (p->allow_only || p->deny || p->blocked)
        return true;
    for (uint32_t i = 0; i < p->n_rules && is_address_only(&p->rules[i]); i++)
        if (is_conn_action(p->classes[p->rules[i].class_index].action))
            return true;
    return false;
}

/* The action for each request of the address; SERVE if it depends on more than the address. */
static enum nj_action decide_address(const struct nj_policy *p, const struct nj_addr *addr)
{
    if (!p->lists && !p->allow_only)
        return NJ_ACTION_SERVE;
    uint32_t lists = lists_of(p, addr);
    if (is_refused(p, lists))
        return p->deny_action;
    for (uint32_t i = 0; i < p->n_rules && is_address_only(&p->rules[i]); i++)
        if (!p->rules[i].lists || (p->rules[i].lists & lists))
            return p->classes[p->rules[i].class_index].action;
    return NJ_ACTION_SERVE;
}

enum nj_action nj_policy_decide_conn(const struct nj_policy *p, const struct nj_addr *addr)
{
    if (nj_policy_blocks(p, addr))
        return p->deny_action == NJ_ACTION_DROP ? NJ_ACTION_DROP : NJ_ACTION_RESET;
    enum nj_action action = decide_address(p, addr);
    return is_conn_action(action) ? action : NJ_ACTION_SERVE;
}

static bool forbids(enum nj_action a)
{
    return is_conn_action(a) || a == NJ_ACTION_FORBID;
}

bool nj_policy_forbids_any(const struct nj_policy *p)
{
    bool any = p->allow_only || p->deny || p->blocked;

    for (uint32_t i = 0; i < p->n_classes; i++)
        any |= forbids(p->classes[i].action);
    return any;
}

bool nj_policy_forbids(const struct nj_policy *p, const struct nj_addr *addr,
                       const struct nj_class *class_of)
{
    return forbids(class_of->action) || forbids(decide_address(p, addr));
}

static const struct nj_class *class_of(const struct match_input *a)
{
    for (uint32_t i = 0; i < a->p->n_rules; i++)
        if (rule_matches(a, &a->p->rules[i]))
            return &a->p->classes[a->p->rules[i].class_index];
    return &a->p->classes[0];
}

void nj_policy_decide_request(const struct nj_policy *p, const struct nj_hash_key *key,
                              const struct nj_policy_request *req, struct nj_policy_verdict *out)
{
    struct match_input a;

    a.p = p;
    a.req = req;
    a.lists = lists_of(p, req->addr);
    if (p->n_rules > 0)
        a.host = nj_host_of_authority(req->head->authority);
    out->class_of = class_of(&a);
    out->action = is_refused(p, a.lists) ? p->deny_action : out->class_of->action;
    find_client(&a, key, out);
    out->client_key = nj_policy_client_key_in_class(out->client_hash, out->class_of);
}
