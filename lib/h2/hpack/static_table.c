/* SPDX-License-Identifier: BSD-3-Clause */
/* The static table (RFC 7541 Appendix A). */
#include "h2/hpack/hpack_internal.h"

#define FIELD(n, v, t)                                                                             \
    {                                                                                              \
        .name = NJ_STR_INIT(n), .value = NJ_STR_INIT(v), .token = NJ__TOKEN_##t,                   \
    }

#define KNOWN(n, v, k)                                                                             \
    {                                                                                              \
        .name = NJ_STR_INIT(n), .value = NJ_STR_INIT(v),                                           \
        .token = NJ__TOKEN_HEADER_BASE + (uint8_t)NJ_HEADER_##k,                                   \
    }

/* An entry whose empty value is invalid for the field. */
#define EMPTY(n, t)                                                                                \
    {                                                                                              \
        .name = NJ_STR_INIT(n), .value = NJ_STR_INIT(""), .token = NJ__TOKEN_##t,                  \
        .malformed = true,                                                                         \
    }

const struct nj__hpack_field nj__hpack_static[NJ__HPACK_N_STATIC + 1] = {
    [1] = EMPTY(":authority", AUTHORITY),
    [2] = FIELD(":method", "GET", METHOD),
    [3] = FIELD(":method", "POST", METHOD),
    [4] = FIELD(":path", "/", PATH),
    [5] = FIELD(":path", "/index.html", PATH),
    [6] = FIELD(":scheme", "http", SCHEME),
    [7] = FIELD(":scheme", "https", SCHEME),
    [8] = FIELD(":status", "200", STATUS),
    [9] = FIELD(":status", "204", STATUS),
    [10] = FIELD(":status", "206", STATUS),
    [11] = FIELD(":status", "304", STATUS),
    [12] = FIELD(":status", "400", STATUS),
    [13] = FIELD(":status", "404", STATUS),
    [14] = FIELD(":status", "500", STATUS),
    [15] = FIELD("accept-charset", "", OTHER),
    [16] = KNOWN("accept-encoding", "gzip, deflate", ACCEPT_ENCODING),
    [17] = FIELD("accept-language", "", OTHER),
    [18] = FIELD("accept-ranges", "", OTHER),
    [19] = KNOWN("accept", "", ACCEPT),
    [20] = FIELD("access-control-allow-origin", "", OTHER),
    [21] = FIELD("age", "", OTHER),
    [22] = FIELD("allow", "", OTHER),
    [23] = FIELD("authorization", "", OTHER),
    [24] = FIELD("cache-control", "", OTHER),
    [25] = FIELD("content-disposition", "", OTHER),
    [26] = FIELD("content-encoding", "", OTHER),
    [27] = FIELD("content-language", "", OTHER),
    [28] = FIELD("content-length", "", CONTENT_LENGTH),
    [29] = FIELD("content-location", "", OTHER),
    [30] = FIELD("content-range", "", OTHER),
    [31] = FIELD("content-type", "", OTHER),
    [32] = FIELD("cookie", "", OTHER),
    [33] = FIELD("date", "", OTHER),
    [34] = FIELD("etag", "", OTHER),
    [35] = FIELD("expect", "", EXPECT),
    [36] = FIELD("expires", "", OTHER),
    [37] = FIELD("from", "", OTHER),
    [38] = EMPTY("host", HOST),
    [39] = KNOWN("if-match", "", IF_MATCH),
    [40] = KNOWN("if-modified-since", "", IF_MODIFIED_SINCE),
    [41] = KNOWN("if-none-match", "", IF_NONE_MATCH),
    [42] = KNOWN("if-range", "", IF_RANGE),
    [43] = KNOWN("if-unmodified-since", "", IF_UNMODIFIED_SINCE),
    [44] = FIELD("last-modified", "", OTHER),
    [45] = FIELD("link", "", OTHER),
    [46] = FIELD("location", "", OTHER),
    [47] = FIELD("max-forwards", "", OTHER),
    [48] = FIELD("proxy-authenticate", "", OTHER),
    [49] = FIELD("proxy-authorization", "", OTHER),
    [50] = KNOWN("range", "", RANGE),
    [51] = KNOWN("referer", "", REFERER),
    [52] = FIELD("refresh", "", OTHER),
    [53] = FIELD("retry-after", "", OTHER),
    [54] = FIELD("server", "", OTHER),
    [55] = FIELD("set-cookie", "", OTHER),
    [56] = FIELD("strict-transport-security", "", OTHER),
    [57] = FIELD("transfer-encoding", "", CONN_SPECIFIC),
    [58] = KNOWN("user-agent", "", USER_AGENT),
    [59] = FIELD("vary", "", OTHER),
    [60] = FIELD("via", "", OTHER),
    [61] = FIELD("www-authenticate", "", OTHER),
};
