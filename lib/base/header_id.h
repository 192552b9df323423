/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of the request header fields that the server itself reads, and their names. */
#pragma once

#include "base/str.h"

/* Fields that the server itself reads. The decoder stores their values by number, so that readers
 * need not search the list. The first eight are in the order in which the file server keeps them
 * while there is room: http/files/request_fields.c. */
enum nj_header {
    NJ_HEADER_IF_MATCH,
    NJ_HEADER_IF_UNMODIFIED_SINCE,
    NJ_HEADER_IF_NONE_MATCH,
    NJ_HEADER_IF_MODIFIED_SINCE,
    NJ_HEADER_IF_RANGE,
    NJ_HEADER_RANGE,
    NJ_HEADER_ACCEPT_ENCODING,
    NJ_HEADER_ACCEPT,
    NJ_HEADER_REFERER,
    NJ_HEADER_USER_AGENT,
    NJ_N_HEADERS
};

/* The number of the field with this name (lower case), or NJ_N_HEADERS. */
enum nj_header nj_header_id_of_name(struct nj_str name);
struct nj_str nj_header_name_of_id(enum nj_header which);
