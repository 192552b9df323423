/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists in field values (RFC 9110 5.6.1), and the list of Expect. */
#pragma once

#include "base/str.h"

/* Number of bytes before the first `end` outside of quotes, or before the end of the string. */
uint32_t nj_list_span_to(struct nj_str s, char end);
/* Takes the next non-empty element of a comma-separated list (RFC 9110 5.6.1.2), trimmed. Commas in
 * quoted strings do not separate. False: no element is left. */
bool nj_list_next(struct nj_str *rest, struct nj_str *element);
/* Reads one line of Expect (RFC 9110 10.1.1): does it have 100-continue, and anything else? What is
 * not there is left as it was. An empty list expects nothing. */
void nj_expect_read(struct nj_str list, bool *expects_continue, bool *expects_other);
