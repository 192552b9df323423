/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of status codes (RFC 9110 15, RFC 6585). Contract: status_reason.h. */
#include "base/status_reason.h"

#include "base/compiler.h"

struct nj_str nj_status_reason(uint16_t status)
{
    static const struct {
        uint16_t status;
        struct nj_str reason;
    } table[] = {
        {200, NJ_STR_INIT("OK")},
        {201, NJ_STR_INIT("Created")},
        {202, NJ_STR_INIT("Accepted")},
        {203, NJ_STR_INIT("Non-Authoritative Information")},
        {204, NJ_STR_INIT("No Content")},
        {205, NJ_STR_INIT("Reset Content")},
        {206, NJ_STR_INIT("Partial Content")},
        {300, NJ_STR_INIT("Multiple Choices")},
        {301, NJ_STR_INIT("Moved Permanently")},
        {302, NJ_STR_INIT("Found")},
        {303, NJ_STR_INIT("See Other")},
        {304, NJ_STR_INIT("Not Modified")},
        {307, NJ_STR_INIT("Temporary Redirect")},
        {308, NJ_STR_INIT("Permanent Redirect")},
        {400, NJ_STR_INIT("Bad Request")},
        {401, NJ_STR_INIT("Unauthorized")},
        {403, NJ_STR_INIT("Forbidden")},
        {404, NJ_STR_INIT("Not Found")},
        {405, NJ_STR_INIT("Method Not Allowed")},
        {406, NJ_STR_INIT("Not Acceptable")},
        {408, NJ_STR_INIT("Request Timeout")},
        {409, NJ_STR_INIT("Conflict")},
        {410, NJ_STR_INIT("Gone")},
        {411, NJ_STR_INIT("Length Required")},
        {412, NJ_STR_INIT("Precondition Failed")},
        {413, NJ_STR_INIT("Content Too Large")},
        {414, NJ_STR_INIT("URI Too Long")},
        {415, NJ_STR_INIT("Unsupported Media Type")},
        {416, NJ_STR_INIT("Range Not Satisfiable")},
        {417, NJ_STR_INIT("Expectation Failed")},
        {421, NJ_STR_INIT("Misdirected Request")},
        {422, NJ_STR_INIT("Unprocessable Content")},
        {425, NJ_STR_INIT("Too Early")},
        {426, NJ_STR_INIT("Upgrade Required")},
        {428, NJ_STR_INIT("Precondition Required")},
        {429, NJ_STR_INIT("Too Many Requests")},
        {431, NJ_STR_INIT("Request Header Fields Too Large")},
        {451, NJ_STR_INIT("Unavailable For Legal Reasons")},
        {500, NJ_STR_INIT("Internal Server Error")},
        {501, NJ_STR_INIT("Not Implemented")},
        {502, NJ_STR_INIT("Bad Gateway")},
        {503, NJ_STR_INIT("Service Unavailable")},
        {504, NJ_STR_INIT("Gateway Timeout")},
        {505, NJ_STR_INIT("HTTP Version Not Supported")},
        {507, NJ_STR_INIT("Insufficient Storage")},
    };

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(table); i++)
        if (table[i].status == status)
            return table[i].reason;
    return NJ_STR(""); /* it may be empty (RFC 9112 4) */
}
