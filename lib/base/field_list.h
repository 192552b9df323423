/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists in field values (RFC 9110 5.6.1). */
#pragma once

#include "base/str.h"

/* Number of bytes before the first `end` outside of quotes, or before the end of the string. */
uint32_t nj_list_span_to(struct nj_str s, char end);
/* Takes the next non-empty element of a comma-separated list (RFC 9110 5.6.1.2), trimmed. Commas in
 * quoted strings do not separate. False: no element is left. */
bool nj_list_next(struct nj_str *rest, struct nj_str *element);
