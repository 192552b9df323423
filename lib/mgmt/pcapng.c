/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/pcapng.h"

#include <string.h>

enum block {
    SECTION = 0x0a0d0d0a,
    INTERFACE = 1,
    STATISTICS = 5,
    PACKET = 6,
};

#define MAGIC    0x1a2b3c4du
#define ETHERNET 1u /* LINKTYPE_ETHERNET */
#define NANO     9u /* if_tsresol: 10^-9 s */

enum option {
    END_OF_OPTIONS = 0,
    SHB_USERAPPL = 4,
    IF_NAME = 2,
    IF_DESCRIPTION = 3,
    IF_MACADDR = 6,
    IF_TSRESOL = 9,
    EPB_FLAGS = 2,
    ISB_STARTTIME = 2,
    ISB_ENDTIME = 3,
    ISB_IFRECV = 4,
    ISB_IFDROP = 5,
    ISB_USRDELIV = 8,
};

#define INBOUND  1u /* of EPB_FLAGS */
#define OUTBOUND 2u

struct writer {
    uint8_t *out;
    size_t n;
};

static void put(struct writer *w, const void *bytes, size_t n)
{
    if (n > 0)
        memcpy(w->out + w->n, bytes, n);
    w->n += n;
    while (w->n % 4 != 0)
        w->out[w->n++] = 0;
}

static void put_u32(struct writer *w, uint32_t v)
{
    put(w, &v, sizeof v);
}

static void put_u16s(struct writer *w, uint16_t a, uint16_t b)
{
    const uint16_t both[] = {a, b};

    put(w, both, sizeof both);
}

/* Times have the upper half first, in either byte order. */
static void put_time(struct writer *w, uint64_t ns)
{
    put_u32(w, (uint32_t)(ns >> 32));
    put_u32(w, (uint32_t)ns);
}

static struct writer begin(uint8_t *out, enum block type)
{
    struct writer w = {out, 0};

    put_u32(&w, type);
    put_u32(&w, 0); /* the length, later */
    return w;
}

static void put_option(struct writer *w, enum option code, const void *value, size_t n)
{
    put_u16s(w, (uint16_t)code, (uint16_t)n);
    put(w, value, n);
}

static void put_text(struct writer *w, enum option code, const char *text)
{
    size_t n = strnlen(text, NJ__PCAPNG_NAME_MAX);

    if (n > 0)
        put_option(w, code, text, n);
}

static void put_time_option(struct writer *w, enum option code, uint64_t ns)
{
    put_u16s(w, (uint16_t)code, sizeof ns);
    put_time(w, ns);
}

/* The last options were written. */
static size_t end(struct writer *w)
{
    put_option(w, END_OF_OPTIONS, NULL, 0);
    uint32_t n = (uint32_t)w->n + 4;
    put_u32(w, n);
    memcpy(w->out + 4, &n, sizeof n);
    return n;
}

size_t nj__pcapng_section(uint8_t *out, const char *application)
{
    struct writer w = begin(out, SECTION);
    const uint64_t unknown_length = UINT64_MAX;

    put_u32(&w, MAGIC);
    put_u16s(&w, 1, 0); /* version */
    put(&w, &unknown_length, sizeof unknown_length);
    put_text(&w, SHB_USERAPPL, application);
    return end(&w);
}

size_t nj__pcapng_interface(uint8_t *out, const struct nj__pcapng_interface *interface)
{
    struct writer w = begin(out, INTERFACE);
    const uint8_t resolution = NANO;

    put_u16s(&w, ETHERNET, 0);
    put_u32(&w, interface->snaplen);
    put_text(&w, IF_NAME, interface->name);
    put_text(&w, IF_DESCRIPTION, interface->description);
    put_option(&w, IF_MACADDR, interface->mac, sizeof interface->mac);
    put_option(&w, IF_TSRESOL, &resolution, sizeof resolution);
    return end(&w);
}

size_t nj__pcapng_packet(uint8_t *out, const struct nj__pcapng_packet *packet)
{
    struct writer w = begin(out, PACKET);
    const uint32_t flags = packet->is_sent ? OUTBOUND : INBOUND;

    put_u32(&w, packet->interface);
    put_time(&w, packet->utc_ns);
    put_u32(&w, packet->n_kept);
    put_u32(&w, packet->n_bytes);
    put(&w, packet->data, packet->n_kept);
    put_option(&w, EPB_FLAGS, &flags, sizeof flags);
    return end(&w);
}

size_t nj__pcapng_statistics(uint8_t *out, const struct nj__pcapng_statistics *statistics)
{
    struct writer w = begin(out, STATISTICS);
    const uint64_t n_all = statistics->n_captured + statistics->n_dropped;

    put_u32(&w, statistics->interface);
    put_time(&w, statistics->ended_ns);
    put_time_option(&w, ISB_STARTTIME, statistics->begun_ns);
    put_time_option(&w, ISB_ENDTIME, statistics->ended_ns);
    put_option(&w, ISB_IFRECV, &n_all, sizeof n_all);
    put_option(&w, ISB_IFDROP, &statistics->n_dropped, sizeof n_all);
    put_option(&w, ISB_USRDELIV, &statistics->n_captured, sizeof n_all);
    return end(&w);
}
