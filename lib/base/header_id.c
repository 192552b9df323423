/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of names. Contract: header_id.h. */
#include "base/header_id.h"

static const struct nj_str names[NJ_N_HEADERS] = {
    [NJ_HEADER_ACCEPT] = NJ_STR_INIT("accept"),
    [NJ_HEADER_ACCEPT_ENCODING] = NJ_STR_INIT("accept-encoding"),
    [NJ_HEADER_IF_MATCH] = NJ_STR_INIT("if-match"),
    [NJ_HEADER_IF_MODIFIED_SINCE] = NJ_STR_INIT("if-modified-since"),
    [NJ_HEADER_IF_NONE_MATCH] = NJ_STR_INIT("if-none-match"),
    [NJ_HEADER_IF_RANGE] = NJ_STR_INIT("if-range"),
    [NJ_HEADER_IF_UNMODIFIED_SINCE] = NJ_STR_INIT("if-unmodified-since"),
    [NJ_HEADER_RANGE] = NJ_STR_INIT("range"),
    [NJ_HEADER_REFERER] = NJ_STR_INIT("referer"),
    [NJ_HEADER_USER_AGENT] = NJ_STR_INIT("user-agent"),
};

struct nj_str nj_header_name_of_id(enum nj_header which)
{
    return names[which];
}

enum nj_header nj_header_id_of_name(struct nj_str name)
{
    unsigned i = 0;

    while (i < NJ_N_HEADERS && !nj_str_eq(names[i], name))
        i++;
    return (enum nj_header)i;
}
