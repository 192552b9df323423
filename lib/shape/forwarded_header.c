/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses X-Forwarded-For and Forwarded (RFC 7239 4) from right to left, and X-Forwarded-Proto. */
#include "shape/forwarded_header.h"

#include <arpa/inet.h>
#include <string.h>

static const struct nj_str forwarded = NJ_STR_INIT("forwarded");
static const struct nj_str x_forwarded_for = NJ_STR_INIT("x-forwarded-for");

bool nj_forwarded_is_name(struct nj_str name)
{
    return nj_str_eq(name, forwarded) || nj_str_eq(name, x_forwarded_for);
}

/* Splits the element after the last `mark` off *list and trims it. Returns false when the list is
 * empty. Quotes are ignored: those further left were written by an untrusted party, and must not
 * affect the elements to the right. */
static bool split_last(struct nj_str *list, char mark, struct nj_str *last)
{
    if (!list->p)
        return false;
    const char *at = list->n_bytes > 0 ? memrchr(list->p, mark, list->n_bytes) : NULL;
    uint32_t n = at ? (uint32_t)(at - list->p) : 0;
    *last = at ? (struct nj_str){at + 1, list->n_bytes - n - 1} : *list;
    *last = nj_str_trim(*last);
    *list = (struct nj_str){at ? list->p : NULL, n};
    return true;
}

/* "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:80". */
static bool parse_node(struct nj_str s, struct nj_addr *out)
{
    char text[INET6_ADDRSTRLEN];
    struct in_addr v4;

    if (s.n_bytes == 0)
        return false;
    const char *colon = memchr(s.p, ':', s.n_bytes);
    const char *end = s.p[0] == '[' ? memchr(s.p, ']', s.n_bytes) : NULL;
    if (end)
        s = (struct nj_str){s.p + 1, (uint32_t)(end - s.p) - 1};
    else if (colon && colon == (const char *)memrchr(
                                   s.p, ':', s.n_bytes)) /* a single colon precedes a port */
        s.n_bytes = (uint32_t)(colon - s.p);
    if (s.n_bytes >= sizeof text)
        return false;
    memcpy(text, s.p, s.n_bytes);
    text[s.n_bytes] = '\0';
    if (inet_pton(AF_INET, text, &v4) == 1) {
        *out = nj_addr_from_v4(v4.s_addr);
        return true;
    }
    return inet_pton(AF_INET6, text, out->b) == 1;
}

/* Is no quoted string of the element cut? A comma in one, which may be a client's (host="a,b"),
 * would make its rest an element that the client has written. An escape (RFC 9110 5.6.4) could hide
 * that. */
static bool has_whole_strings(struct nj_str element)
{
    uint32_t n_quotes = 0;

    for (uint32_t i = 0; i < element.n_bytes; i++) {
        if (element.p[i] == '\\')
            return false;
        n_quotes += element.p[i] == '"';
    }
    return n_quotes % 2 == 0;
}

/* Splits the pair before the first semicolon that is in no quoted string off *element. */
static bool split_pair(struct nj_str *element, struct nj_str *pair)
{
    bool is_quoted = false;
    uint32_t n = 0;

    if (element->n_bytes == 0)
        return false;
    for (; n < element->n_bytes && (is_quoted || element->p[n] != ';'); n++)
        is_quoted ^= element->p[n] == '"';
    *pair = nj_str_trim((struct nj_str){element->p, n});
    nj_str_skip(element, n < element->n_bytes ? n + 1 : n);
    return true;
}

/* RFC 7239 4: pairs separated by semicolons, with case-insensitive names, each at most once. */
static struct nj_str parameter(struct nj_str element, struct nj_str wanted)
{
    struct nj_str pair, name, found = {NULL, 0};

    while (split_pair(&element, &pair)) {
        const char *is = pair.n_bytes > 0 ? memchr(pair.p, '=', pair.n_bytes) : NULL;
        if (!is)
            continue;
        name = nj_str_trim((struct nj_str){pair.p, (uint32_t)(is - pair.p)});
        if (!nj_str_eq_nocase(name, wanted))
            continue;
        if (found.p)
            return (struct nj_str){NULL, 0};
        found = nj_str_trim((struct nj_str){is + 1, pair.n_bytes - (uint32_t)(is - pair.p) - 1});
        if (found.n_bytes >= 2 && found.p[0] == '"' && found.p[found.n_bytes - 1] == '"')
            found = (struct nj_str){found.p + 1, found.n_bytes - 2};
    }
    return found;
}

/* Lines of one name form one list, in order. */
static bool next_line(struct nj_forwarded *f)
{
    while (f->n_lines_left > 0) {
        const struct nj_field *line = &f->head->fields[--f->n_lines_left];
        if (!nj_str_eq(line->name, f->name))
            continue;
        f->list = line->value;
        return true;
    }
    return false;
}

/* The next element, from the right, that is not empty (RFC 9110 5.6.1.2). */
static bool next_element(struct nj_forwarded *f, struct nj_str *element)
{
    do {
        while (!split_last(&f->list, ',', element))
            if (!next_line(f))
                return false;
        if (f->n_hops++ == NJ_FORWARDED_HOPS_MAX)
            return false;
    } while (element->n_bytes == 0);
    return true;
}

bool nj_forwarded_next(struct nj_forwarded *f, struct nj_addr *out)
{
    struct nj_str element;

    bool has_pairs = nj_str_eq(f->name, forwarded);

    if (next_element(f, &element) && (!has_pairs || has_whole_strings(element))) {
        f->element = element;
        if (has_pairs)
            element = parameter(element, NJ_STR("for"));
        if (parse_node(element, out))
            return true;
    }
    f->list = (struct nj_str){NULL, 0};
    f->n_lines_left = 0;
    return false;
}

enum nj_scheme nj_forwarded_proto(struct nj_str element)
{
    return nj_scheme_parse(parameter(element, NJ_STR("proto")));
}

enum nj_scheme nj_x_forwarded_proto(const struct nj_request_head *head)
{
    const struct nj_str name = NJ_STR("x-forwarded-proto");
    const struct nj_field *f = nj_field_find(head->fields, head->n_fields, name);
    const struct nj_field *end = head->fields + head->n_fields;

    if (!f || nj_field_find(f + 1, (size_t)(end - f) - 1, name))
        return NJ_SCHEME_NONE;
    return nj_scheme_parse(f->value);
}
