/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of status codes that IANA has registered. Contract: status_reason.h. */
#include "base/status_reason.h"

#include "base/compiler.h"

struct nj_str nj_status_text(uint16_t status)
{
    static const struct {
        uint16_t status;
        struct nj_str text;
    } table[] = {
        {200, NJ_STR_INIT("200 OK\n")},
        {201, NJ_STR_INIT("201 Created\n")},
        {202, NJ_STR_INIT("202 Accepted\n")},
        {203, NJ_STR_INIT("203 Non-Authoritative Information\n")},
        {204, NJ_STR_INIT("204 No Content\n")},
        {205, NJ_STR_INIT("205 Reset Content\n")},
        {206, NJ_STR_INIT("206 Partial Content\n")},
        {207, NJ_STR_INIT("207 Multi-Status\n")},
        {208, NJ_STR_INIT("208 Already Reported\n")},
        {226, NJ_STR_INIT("226 IM Used\n")},
        {300, NJ_STR_INIT("300 Multiple Choices\n")},
        {301, NJ_STR_INIT("301 Moved Permanently\n")},
        {302, NJ_STR_INIT("302 Found\n")},
        {303, NJ_STR_INIT("303 See Other\n")},
        {304, NJ_STR_INIT("304 Not Modified\n")},
        {305, NJ_STR_INIT("305 Use Proxy\n")},
        {307, NJ_STR_INIT("307 Temporary Redirect\n")},
        {308, NJ_STR_INIT("308 Permanent Redirect\n")},
        {400, NJ_STR_INIT("400 Bad Request\n")},
        {401, NJ_STR_INIT("401 Unauthorized\n")},
        {402, NJ_STR_INIT("402 Payment Required\n")},
        {403, NJ_STR_INIT("403 Forbidden\n")},
        {404, NJ_STR_INIT("404 Not Found\n")},
        {405, NJ_STR_INIT("405 Method Not Allowed\n")},
        {406, NJ_STR_INIT("406 Not Acceptable\n")},
        {407, NJ_STR_INIT("407 Proxy Authentication Required\n")},
        {408, NJ_STR_INIT("408 Request Timeout\n")},
        {409, NJ_STR_INIT("409 Conflict\n")},
        {410, NJ_STR_INIT("410 Gone\n")},
        {411, NJ_STR_INIT("411 Length Required\n")},
        {412, NJ_STR_INIT("412 Precondition Failed\n")},
        {413, NJ_STR_INIT("413 Content Too Large\n")},
        {414, NJ_STR_INIT("414 URI Too Long\n")},
        {415, NJ_STR_INIT("415 Unsupported Media Type\n")},
        {416, NJ_STR_INIT("416 Range Not Satisfiable\n")},
        {417, NJ_STR_INIT("417 Expectation Failed\n")},
        {421, NJ_STR_INIT("421 Misdirected Request\n")},
        {422, NJ_STR_INIT("422 Unprocessable Content\n")},
        {423, NJ_STR_INIT("423 Locked\n")},
        {424, NJ_STR_INIT("424 Failed Dependency\n")},
        {425, NJ_STR_INIT("425 Too Early\n")},
        {426, NJ_STR_INIT("426 Upgrade Required\n")},
        {428, NJ_STR_INIT("428 Precondition Required\n")},
        {429, NJ_STR_INIT("429 Too Many Requests\n")},
        {431, NJ_STR_INIT("431 Request Header Fields Too Large\n")},
        {451, NJ_STR_INIT("451 Unavailable For Legal Reasons\n")},
        {500, NJ_STR_INIT("500 Internal Server Error\n")},
        {501, NJ_STR_INIT("501 Not Implemented\n")},
        {502, NJ_STR_INIT("502 Bad Gateway\n")},
        {503, NJ_STR_INIT("503 Service Unavailable\n")},
        {504, NJ_STR_INIT("504 Gateway Timeout\n")},
        {505, NJ_STR_INIT("505 HTTP Version Not Supported\n")},
        {506, NJ_STR_INIT("506 Variant Also Negotiates\n")},
        {507, NJ_STR_INIT("507 Insufficient Storage\n")},
        {508, NJ_STR_INIT("508 Loop Detected\n")},
        {511, NJ_STR_INIT("511 Network Authentication Required\n")},
    };

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(table); i++)
        if (table[i].status == status)
            return table[i].text;
    return NJ_STR("");
}

struct nj_str nj_status_reason(uint16_t status)
{
    struct nj_str text = nj_status_text(status);

    if (text.n_bytes == 0)
        return text;                                      /* it may be empty (RFC 9112 4) */
    return (struct nj_str){text.p + 4, text.n_bytes - 5}; /* "200 OK\n" */
}
