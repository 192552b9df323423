/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In which bytes lib/h1 and http_parser (2.9.4 as Debian builds it, HTTP_PARSER_STRICT=0) see
 * different requests, and which clause decides. h1_differential.c includes this table, and ends
 * with a report when two results differ for which no row is. ./dev tidy --rfc prints the rows in
 * docs/rfc/http1.md.
 *
 * A row matches bytes by regular expressions of POSIX, which know nothing of either parser's code.
 */
#pragma once

/* What differs, and which bytes a row's patterns see. HEAD: from the end of the message before to
 * the byte that the refusing parser has read last, or to the end of the head. BODY: from the end of
 * the head to that byte. */
enum differs {
    WE_REFUSE_HEAD,
    THEY_REFUSE_HEAD,
    WE_REFUSE_BODY,
    THEY_REFUSE_BODY,
    TARGET, /* these are of a request that both accept; the patterns see its head */
    FIELDS,
    CONTENT,
    END,                  /* where the message ends */
    PERSISTS,             /* whether another request follows, by the head */
    PERSISTS_BY_TRAILERS, /* the same, by trailers; the patterns see the body */
};

struct row {
    const char *name, *clause, *text;
    enum differs differs;
    int why;             /* our counter, or their errno; ANY */
    const char *pattern; /* "": any bytes */
    const char *unless;  /* and not this one, unless NULL */
    int flags;
    bool (*also)(const char *p, size_t n);
};

#define ANY           (-1)
/* Empty lines, method and spaces, before the target. */
#define BEFORE_TARGET "^[\r\n]*[^ \r\n]+ +"
#define VERSION_1_0   "^[\r\n]*[^\r\n]* HTTP/1\\.0\r\n"
#define AUTHORITY     "(([a-z0-9._~!$&'()*+,;=-]|%[0-9a-f][0-9a-f])+|\\[[0-9a-f:.]+\\])"
/* Not HTAB, and not what ends a line. */
#define CONTROL       "[^\t\r\n -~\x80-\xff]"
#define METHODS                                                                                    \
    "(DELETE|GET|HEAD|POST|PUT|CONNECT|OPTIONS|TRACE|COPY|LOCK|MKCOL|MOVE|PROPFIND|PROPPATCH|"     \
    "SEARCH|UNLOCK|BIND|REBIND|UNBIND|ACL|REPORT|MKACTIVITY|CHECKOUT|MERGE|M-SEARCH|NOTIFY|"       \
    "SUBSCRIBE|UNSUBSCRIBE|PATCH|PURGE|MKCALENDAR|LINK|UNLINK|SOURCE)"

/* chunk-ext = *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] ), and the begin of
 * another one that another octet may follow. */
#define SIZE             "(^|\n)[0-9a-f]+"
#define TOKEN            "[!#$%&'*+.^_`|~0-9a-z-]+"
#define QUOTED           "\"([]\t !#-[^-~\x80-\xff]|\\\\[\t -~\x80-\xff])*"
#define BWS              "[ \t]*"
#define EXTENSIONS       "(" BWS ";" BWS TOKEN "(" BWS "=" BWS "(" TOKEN "|" QUOTED "\"))?)*"
#define VALUE_BEGIN      "(" TOKEN "|" QUOTED "\\\\?)?"
#define INCOMPLETE       BWS "(;" BWS "(" TOKEN "(" BWS "(=" BWS VALUE_BEGIN ")?)?)?)?"
/* The begin of an element of a list, and all of one. */
#define ELEMENTS         "([^\n]*,)?" BWS
#define ELEMENT(a)       ELEMENTS a BWS "[,\r]"
#define CLOSE_OR_KEEP    "(close|keep-alive)"
/* Elements `a` and `b` of Connection, in this order. */
#define CONNECTION(a, b) "connection:" ELEMENTS a BWS "(,|[,\r].*\nconnection:)" ELEMENT(b)

/* The bytes end behind the data of a chunk, with an octet that is not of CRLF. */
static bool ends_behind_chunk(const char *p, size_t n);
/* A line of Expect has an element that is not 100-continue. */
static bool expects_other(const char *p, size_t n);
/* They end with octet 1,025 of extensions. */
static bool ends_extensions(const char *p, size_t n);

/* clang-format off */
static const struct row rows[] = {
    /* lines */
    {"bare LF", "RFC 9112 2.2", "a line that ends with LF alone is refused, as a recipient may",
     WE_REFUSE_HEAD, NJ_C_h1_line_end, "(^|[^\r])\n$", NULL, 0, NULL},
    {"bare CR", "RFC 9112 2.2", "a CR that no LF follows is refused",
     WE_REFUSE_HEAD, NJ_C_h1_line_end, "\r([^\n]|$)", NULL, 0, NULL},
    {"empty lines", "RFC 9112 2.2", "one empty line before a request is ignored, no second one",
     WE_REFUSE_HEAD, NJ_C_h1_request_line, "^\r\n\r\n", NULL, 0, NULL},
    {"spaces", "RFC 9112 3", "one SP separates the parts of a request line",
     WE_REFUSE_HEAD, NJ_C_h1_request_line, "^[\r\n]*[^\r\n]*  ", NULL, 0, NULL},
    {"HTTP/0.9", "RFC 9112 2.3", "a request line without version is refused",
     WE_REFUSE_HEAD, NJ_C_h1_request_line, BEFORE_TARGET "[^ ]*\r\n$", NULL, 0, NULL},
    {"ICE", "RFC 9112 2.3", "the version begins with HTTP, also behind SOURCE",
     WE_REFUSE_HEAD, NJ_C_h1_request_line, "^[\r\n]*SOURCE +[^ ]* +ICE/", NULL, 0, NULL},
    {"name of the protocol", "RFC 9112 2.3", "the version begins with HTTP and a slash",
     WE_REFUSE_HEAD, NJ_C_h1_request_line, " H([^\r\n]{4}[0-9]\\.[0-9]|[^\r\n]{0,3})\r\n$",
     " HTTP/", 0, NULL},
    {"version", "RFC 9110 6.2", "another major version gets 505",
     WE_REFUSE_HEAD, NJ_C_h1_version, " HTTP/[02-9]\\.[0-9]\r\n$", NULL, 0, NULL},

    /* methods and targets */
    {"methods", "RFC 9110 16.1.1", "any token is a method; http_parser knows a list",
     THEY_REFUSE_HEAD, HPE_INVALID_METHOD, "^[\r\n]*[!#$%&'*+.^_`|~0-9A-Za-z-]+ ",
     "^[\r\n]*" METHODS " ", 0, NULL},
    {"fragment", "RFC 9110 7.1", "a target with '#' is refused",
     WE_REFUSE_HEAD, NJ_C_h1_target, BEFORE_TARGET "[^ ]*#", NULL, 0, NULL},
    {"control in a target", "RFC 9112 3.2", "a target has no HTAB and no FF",
     WE_REFUSE_HEAD, NJ_C_h1_target, BEFORE_TARGET "[^ ]*[\t\f]", NULL, 0, NULL},
    {"scheme", "RFC 9110 4.2", "a target has the scheme http or https",
     WE_REFUSE_HEAD, NJ_C_h1_target, BEFORE_TARGET "[a-z]+:", BEFORE_TARGET "https?://", REG_ICASE,
     NULL},
    {"https", "RFC 9110 7.4", "https without TLS gets 421",
     WE_REFUSE_HEAD, NJ_C_h1_target, BEFORE_TARGET "https://", NULL, REG_ICASE, NULL},
    {"authority of a target", "RFC 9110 4.2.1", "it has a host, no userinfo, and a port of digits",
     WE_REFUSE_HEAD, NJ_C_h1_target, BEFORE_TARGET "http://",
     BEFORE_TARGET "http://" AUTHORITY "(:[0-9]*)?([/?][^ ]*)? ", REG_ICASE, NULL},
    {"asterisk", "RFC 9112 3.2.4", "only OPTIONS has the target '*'",
     WE_REFUSE_HEAD, NJ_C_h1_target, BEFORE_TARGET "\\*", "^[\r\n]*OPTIONS +\\* ", 0, NULL},
    {"target of CONNECT", "RFC 9112 3.2.3", "CONNECT has a host and a port",
     WE_REFUSE_HEAD, NJ_C_h1_target, "^[\r\n]*CONNECT +",
     "^[\r\n]*CONNECT +" AUTHORITY ":[0-9]+ ", 0, NULL},

    /* fields */
    {"obs-fold", "RFC 9112 5.2", "a folded line is refused, as a server may",
     WE_REFUSE_HEAD, NJ_C_h1_field_value, "\n[ \t][^\n]*\n$", NULL, 0, NULL},
    {"space in a name", "RFC 9112 5.1", "a name is a token, without white space before the colon",
     WE_REFUSE_HEAD, NJ_C_h1_field_name, "\n[^:\n]* [^:\n]*:[^\n]*\n$", NULL, 0, NULL},
    {"control at the begin of a value", "RFC 9110 5.5", "no octet of a value is a control but HTAB",
     WE_REFUSE_HEAD, NJ_C_h1_field_value, ":[ \t]*" CONTROL "[^\n]*\n$", NULL, 0, NULL},
    {"HTAB behind a length", "RFC 9112 5", "white space around a value is no part of it",
     THEY_REFUSE_HEAD, HPE_INVALID_CONTENT_LENGTH,
     "\ncontent-length:[ \t]*[0-9]+[ \t]*\t[ \t]*\r\n", NULL, REG_ICASE, NULL},
    {"HTAB behind a coding", "RFC 9112 5", "the same",
     THEY_REFUSE_HEAD, HPE_INVALID_TRANSFER_ENCODING,
     "\ntransfer-encoding:[ \t]*chunked[ \t]*\t[ \t]*\r\n", NULL, REG_ICASE, NULL},
    {"no Host", "RFC 9112 3.2", "a request of HTTP/1.1 has Host",
     WE_REFUSE_HEAD, NJ_C_h1_host, "", "(\nhost:|" VERSION_1_0 ")", REG_ICASE, NULL},
    {"two Hosts", "RFC 9112 3.2", "Host is there once",
     WE_REFUSE_HEAD, NJ_C_h1_host, "\nhost:.*\nhost:", NULL, REG_ICASE, NULL},
    {"value of Host", "RFC 9112 3.2", "Host has a host and a port, and is empty at most with the "
     "absolute-form", WE_REFUSE_HEAD, NJ_C_h1_host, "\nhost:",
     "\nhost:[ \t]*" AUTHORITY "(:[0-9]*)?[ \t]*\r\n", REG_ICASE, NULL},
    {"Expect", "RFC 9110 10.1.1", "an expectation other than 100-continue gets 417",
     WE_REFUSE_HEAD, NJ_C_request_expectation, "", NULL, 0, expects_other},

    /* the framing of the body */
    {"no length", "RFC 9110 8.6", "Content-Length has a digit",
     WE_REFUSE_HEAD, NJ_C_h1_length, "\ncontent-length:[ \t]*\r\n", NULL, REG_ICASE, NULL},
    {"long length", "RFC 9110 8.6", "Content-Length has at most 18 digits",
     WE_REFUSE_HEAD, NJ_C_h1_length, "\ncontent-length:[ \t]*[0-9]{19}", NULL, REG_ICASE, NULL},
    {"other codings", "RFC 9112 6.1", "a coding before chunked gets 501",
     WE_REFUSE_HEAD, NJ_C_h1_coding, "\ntransfer-encoding:",
     "\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n", REG_ICASE, NULL},
    {"repeated coding", "RFC 9112 6.1", "chunked is applied once, in one line",
     WE_REFUSE_HEAD, NJ_C_h1_coding, "\ntransfer-encoding:.*\ntransfer-encoding:", NULL, REG_ICASE,
     NULL},
    {"a longer name", "RFC 9110 5.1", "names are compared as a whole",
     THEY_REFUSE_HEAD, HPE_INVALID_TRANSFER_ENCODING, "\ntransfer-encoding[^:\r\n]+:", NULL,
     REG_ICASE, NULL},
    {"coding in HTTP/1.0", "RFC 9112 6.1", "Transfer-Encoding in HTTP/1.0 is refused",
     WE_REFUSE_HEAD, NJ_C_h1_length_conflict, VERSION_1_0 "(.*\n)?transfer-encoding:", NULL,
     REG_ICASE, NULL},

    /* chunks */
    {"bare LF in chunks", "RFC 9112 7.1", "lines of chunks end with CRLF",
     WE_REFUSE_BODY, NJ_C_h1_line_end, "(^|[^\r])\n$", NULL, 0, NULL},
    {"bare CR in chunks", "RFC 9112 7.1", "the same",
     WE_REFUSE_BODY, NJ_C_h1_line_end, "\r([^\n]|[^\n]+\n)$", NULL, 0, NULL},
    {"no CRLF behind data", "RFC 9112 7.1", "the data of a chunk is as long as its size says",
     WE_REFUSE_BODY, NJ_C_h1_line_end, "", NULL, 0, ends_behind_chunk},
    {"extension", "RFC 9112 7.1.1", "extensions of chunks are tokens and quoted strings",
     WE_REFUSE_BODY, NJ_C_h1_chunk, SIZE "[ ;][^\n]*$", SIZE EXTENSIONS INCOMPLETE "$", REG_ICASE,
     NULL},
    {"end of an extension", "RFC 9112 7.1.1", "no white space and nothing incomplete before CRLF",
     WE_REFUSE_BODY, NJ_C_h1_line_end, SIZE "[ ;][^\n]*\r$", SIZE EXTENSIONS "\r$", REG_ICASE,
     NULL},
    {"long extensions", "RFC 9112 7.1.1", "those of a body have at most 1,024 bytes",
     WE_REFUSE_BODY, NJ_C_h1_chunk, "", NULL, 0, ends_extensions},
    {"long size", "RFC 9112 7.1", "a size has at most 16 digits and is below 2^63",
     WE_REFUSE_BODY, NJ_C_h1_chunk, "(^|\n)([0-9a-f]{17}|[89a-f][0-9a-f]{15})$", NULL, REG_ICASE,
     NULL},
    {"obs-text in a size", "RFC 9112 7.1", "a size has hexadecimal digits only; http_parser takes "
     "octets from 0x80 on for 0",
     WE_REFUSE_BODY, NJ_C_h1_chunk, "(^|\n)[0-9a-f]*[\x80-\xff]$", NULL, REG_ICASE, NULL},
    {"HTAB before an extension", "RFC 9112 7.1.1", "BWS has HTAB, too",
     THEY_REFUSE_BODY, HPE_INVALID_CHUNK_SIZE, "(^|\n)[0-9a-f]+\t", NULL, REG_ICASE, NULL},
    {"trailers", "RFC 9110 6.5.1", "trailers do not frame a body",
     THEY_REFUSE_BODY, HPE_INVALID_CONTENT_LENGTH, "\ncontent-length:", NULL, REG_ICASE, NULL},
    {"lengths in trailers", "RFC 9110 6.5.1", "the same",
     THEY_REFUSE_BODY, HPE_UNEXPECTED_CONTENT_LENGTH, "\ncontent-length:.*\ncontent-length:", NULL,
     REG_ICASE, NULL},
    {"names of trailers", "RFC 9112 7.1.2", "as names of the head",
     WE_REFUSE_BODY, NJ_C_h1_field_name, "\n[^:\n]* [^:\n]*:[^\n]*\n$", NULL, 0, NULL},
    {"control in a trailer", "RFC 9110 5.5", "as in lines of the head",
     WE_REFUSE_BODY, NJ_C_h1_field_value, ":[ \t]*" CONTROL "[^\n]*\n$", NULL, 0, NULL},
    {"folded trailers", "RFC 9112 5.2", "as lines of the head",
     WE_REFUSE_BODY, NJ_C_h1_field_value, "\n[ \t][^\n]*\n$", NULL, 0, NULL},

    /* the connection */
    {"close and keep-alive", "RFC 9112 9.3", "close takes precedence, in HTTP/1.0 too",
     PERSISTS, ANY,
     VERSION_1_0 "(.*\n)?(" CONNECTION("close", "keep-alive") "|"
     CONNECTION("keep-alive", "close") ")", NULL, REG_ICASE, NULL},
    {"HTAB in Connection", "RFC 9110 5.6.1", "HTAB stands around elements of a list, too",
     PERSISTS, ANY, "\nconnection:" ELEMENTS "(\t" BWS CLOSE_OR_KEEP "|" CLOSE_OR_KEEP BWS "\t)" BWS
     "[,\r]", NULL, REG_ICASE, NULL},
    {"empty elements of Connection", "RFC 9110 5.6.1.2", "they are ignored",
     PERSISTS, ANY, "\nconnection:" ELEMENTS "," ELEMENT(CLOSE_OR_KEEP), NULL, REG_ICASE, NULL},
    {"quotes in Connection", "RFC 9110 5.6.4", "a comma in quotes separates nothing, if open too",
     PERSISTS, ANY, "\nconnection:[^\n]*\"[^\n]*,[ \t]*" CLOSE_OR_KEEP, NULL, REG_ICASE, NULL},
    {"Proxy-Connection", "RFC 9112 C.2.2", "it means nothing",
     PERSISTS, ANY, "\nproxy-connection:" ELEMENT("close"),
     "(" VERSION_1_0 "|\nconnection:" ELEMENT("close") ")", REG_ICASE, NULL},
    {"Proxy-Connection in HTTP/1.0", "RFC 9112 C.2.2", "the same",
     PERSISTS, ANY, VERSION_1_0 "(.*\n)?proxy-connection:" ELEMENT("keep-alive"),
     "\nconnection:" ELEMENT("keep-alive"), REG_ICASE, NULL},
    {"Connection in trailers", "RFC 9110 6.5.1", "trailers do not end a connection, or keep it",
     PERSISTS_BY_TRAILERS, ANY, "\n(proxy-)?connection:", NULL, REG_ICASE, NULL},
};
/* clang-format on */
