/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests the shared object as packetdrill uses it, without a script: loads it by name and calls the
 * functions of its table. Argument: its path.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/assert.h"
#include "script/script.h"
#include "wire/packet.h"

#define OUR_IP  0xc0a80001u
#define PEER_IP 0xc0000201u
#define ISN     7000u
#define DATA    500u  /* less than the default MSS of 536 */
#define LARGE   9000u /* more than the MTU, as from a device that joins segments */

struct check {
    struct packetdrill_interface t;
    int listener, fd;
    int left_open; /* an epoll set that is not closed through the table */
    uint32_t iss;
    uint32_t seq; /* bytes sent by the peer before the numbers of send_seg() */
    struct pkt last;
    uint8_t bytes[SCRIPT_PACKET_MAX];
};

static void send_seg(struct check *c, uint8_t flags, uint32_t seq, uint32_t ack, uint32_t n_bytes)
{
    static const uint8_t data[LARGE] = "what the peer says";
    struct wire_ends ends = {nj_addr_from_v4(htonl(PEER_IP)), nj_addr_from_v4(htonl(OUR_IP)), 50000,
                             8080};
    struct pkt p = {
        .flags = flags, .seq = ISN + c->seq + seq, .win = 65535, .n_bytes = n_bytes, .ecn = -1};

    p.ack = flags & NJ_TCP_ACK ? c->iss + ack : 0;
    size_t n = wire_build(c->bytes, &p, &ends, data);
    NJ_CHECK(c->t.netdev_send(c->t.userdata, c->bytes, n) == 0);
}

/* The next sent packet; its time in microseconds. */
static long long want_seg(struct check *c, uint8_t flags, uint32_t n_bytes)
{
    long long at_us = 0;
    size_t n = sizeof c->bytes;

    NJ_CHECK(c->t.netdev_receive(c->t.userdata, c->bytes, &n, &at_us) == 0);
    NJ_CHECK(wire_parse(c->bytes, n, &c->last) == NULL);
    NJ_CHECK(c->last.flags == flags && c->last.n_bytes == n_bytes);
    NJ_CHECK(c->last.sport == 8080 && c->last.dport == 50000);
    return at_us;
}

static long long clock_us(struct check *c)
{
    struct timeval tv;
    NJ_CHECK(c->t.gettimeofday(c->t.userdata, &tv, NULL) == 0);
    return tv.tv_sec * 1000000ll + tv.tv_usec;
}

static void check_clock(struct check *c)
{
    long long before = clock_us(c), after = clock_us(c);
    NJ_CHECK(after > before); /* otherwise packetdrill's busy loop never ends */
    NJ_CHECK(c->t.usleep(c->t.userdata, 250) == 0);
    NJ_CHECK(clock_us(c) - after >= 250 && clock_us(c) - after < 260);
}

static void listen_on(struct check *c)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(8080)};

    a.sin_addr.s_addr = htonl(OUR_IP);
    c->listener = c->t.socket(c->t.userdata, AF_INET, SOCK_STREAM, IPPROTO_TCP);
    NJ_CHECK(c->listener >= 0);
    NJ_CHECK(c->t.bind(c->t.userdata, c->listener, (struct sockaddr *)&a, sizeof a) == 0);
    NJ_CHECK(c->t.listen(c->t.userdata, c->listener, 5) == 0);
}

static void *accept_in_thread(void *arg)
{
    struct check *c = arg;
    struct sockaddr_in a = {0};
    socklen_t n = sizeof a;
    long long *returned_us = malloc(sizeof *returned_us);

    c->fd = c->t.accept(c->t.userdata, c->listener, (struct sockaddr *)&a, &n);
    *returned_us = clock_us(c);
    NJ_CHECK(c->fd < 0 || (ntohs(a.sin_port) == 50000 && ntohl(a.sin_addr.s_addr) == PEER_IP));
    return returned_us;
}

/* accept() waits in a second thread while this one delivers the handshake and advances the clock.
 * In any order of the threads, the call returns and gets the time of the ACK, or a later one if it
 * began after that. */
static void check_handshake(struct check *c)
{
    pthread_t thread;
    void *returned_us;
    struct pollfd f = {.fd = c->listener, .events = POLLIN};

    NJ_CHECK(c->t.poll(c->t.userdata, &f, 1, 10) == 0);
    NJ_CHECK(pthread_create(&thread, NULL, accept_in_thread, c) == 0);
    send_seg(c, NJ_TCP_SYN, 0, 0, 0);
    want_seg(c, NJ_TCP_SYN | NJ_TCP_ACK, 0);
    NJ_CHECK(c->last.ack == ISN + 1);
    c->iss = c->last.seq;
    NJ_CHECK(c->t.usleep(c->t.userdata, 5000) == 0);
    send_seg(c, NJ_TCP_ACK, 1, 1, 0);
    long long acked_us = clock_us(c);
    NJ_CHECK(pthread_join(thread, &returned_us) == 0);
    NJ_CHECK(c->fd >= 0 && *(long long *)returned_us >= acked_us - 1);
    free(returned_us);
}

static void check_data(struct check *c)
{
    uint8_t data[DATA] = {0};
    int n = 0;

    NJ_CHECK(c->t.fcntl(c->t.userdata, c->fd, F_SETFL, O_RDWR | O_NONBLOCK) == 0);
    NJ_CHECK(c->t.fcntl(c->t.userdata, c->fd, F_GETFL) & O_NONBLOCK);
    NJ_CHECK(c->t.read(c->t.userdata, c->fd, data, sizeof data) == -1 && errno == EAGAIN);
    NJ_CHECK(c->t.write(c->t.userdata, c->fd, data, DATA) == DATA);
    want_seg(c, NJ_TCP_PSH | NJ_TCP_ACK, DATA);
    NJ_CHECK(c->last.seq == c->iss + 1 && c->last.ack == ISN + c->seq + 1);
    NJ_CHECK(c->t.ioctl(c->t.userdata, c->fd, TIOCOUTQ, &n) == 0 && n == DATA);
    send_seg(c, NJ_TCP_PSH | NJ_TCP_ACK, 1, 1 + DATA, DATA);
    NJ_CHECK(c->t.ioctl(c->t.userdata, c->fd, FIONREAD, &n) == 0 && n == DATA);
    NJ_CHECK(c->t.recv(c->t.userdata, c->fd, data, 4, MSG_PEEK) == 4);
    NJ_CHECK(c->t.read(c->t.userdata, c->fd, data, sizeof data) == DATA);
    NJ_CHECK(memcmp(data, "what the peer says", 18) == 0);
    NJ_CHECK(c->t.ioctl(c->t.userdata, c->fd, TIOCOUTQ, &n) == 0 && n == 0);
}

static void check_epoll(struct check *c)
{
    struct epoll_event e = {.events = EPOLLIN, .data.fd = 42}, got = {0};
    int ep = c->t.epoll_create(c->t.userdata, 1);

    NJ_CHECK(ep >= 0);
    NJ_CHECK(c->t.epoll_ctl(c->t.userdata, ep, EPOLL_CTL_ADD, c->fd, &e) == 0);
    NJ_CHECK(c->t.epoll_ctl(c->t.userdata, ep, EPOLL_CTL_ADD, c->fd, &e) == -1 && errno == EEXIST);
    long long before = clock_us(c);
    NJ_CHECK(c->t.epoll_wait(c->t.userdata, ep, &got, 1, 300) == 0);
    NJ_CHECK(clock_us(c) - before >= 300000); /* of virtual time */
    want_seg(c, NJ_TCP_ACK, 0);               /* the delayed ACK of the data was due meanwhile */
    send_seg(c, NJ_TCP_ACK, 1 + DATA, 1 + DATA, 1);
    NJ_CHECK(c->t.epoll_wait(c->t.userdata, ep, &got, 1, 300) == 1);
    NJ_CHECK(got.events == EPOLLIN && got.data.fd == 42);
    NJ_CHECK(c->t.close(c->t.userdata, ep) == 0);
}

/* At the end the stock runner calls the kernel's close() on every descriptor that the script left
 * open, and treats an error as a failure of the script. Therefore descriptors are the kernel's:
 * they are unique, and closing one through the table closes it in the kernel. */
static void check_descriptors(struct check *c)
{
    int a = c->t.socket(c->t.userdata, AF_INET, SOCK_STREAM, IPPROTO_TCP);
    int b = c->t.socket(c->t.userdata, AF_INET, SOCK_STREAM, IPPROTO_TCP);
    int ep = c->t.epoll_create(c->t.userdata, 1);

    NJ_CHECK(fcntl(c->listener, F_GETFD) == FD_CLOEXEC && fcntl(c->fd, F_GETFD) == FD_CLOEXEC);
    NJ_CHECK(a > 2 && b > 2 && ep > 2 && a != b && a != ep && b != ep);
    NJ_CHECK(fcntl(a, F_GETFL) >= 0 && fcntl(b, F_GETFL) >= 0 && fcntl(ep, F_GETFL) >= 0);
    NJ_CHECK(c->t.close(c->t.userdata, a) == 0);
    NJ_CHECK(fcntl(a, F_GETFL) == -1 && errno == EBADF);
    /* Closed outside the table. The number may then be reused by another owner, whose descriptor
     * must not be closed. */
    NJ_CHECK(close(b) == 0);
    int other = dup2(STDERR_FILENO, b);
    NJ_CHECK(other == b && c->t.close(c->t.userdata, b) == 0);
    NJ_CHECK(fcntl(other, F_GETFL) >= 0 && close(other) == 0);
    c->left_open = ep;
}

/* Without a buffer: EFAULT where the kernel returns it, and only if it would access the buffer. */
static void check_no_buffer(struct check *c)
{
    struct packetdrill_interface *t = &c->t;
    struct iovec none = {NULL, 4}, empty = {NULL, 0};
    struct msghdr no_iov = {.msg_iovlen = 1}, msg = {.msg_iov = &none, .msg_iovlen = 1};
    struct sockaddr_in a;
    uint8_t data[4];
    socklen_t n = sizeof a;
    void *u = t->userdata;

    NJ_CHECK(t->read(u, c->fd, NULL, 4) == -1 && errno == EAGAIN); /* no data */
    NJ_CHECK(t->read(u, c->fd, NULL, 0) == 0);
    send_seg(c, NJ_TCP_PSH | NJ_TCP_ACK, 1, 1, 4);
    NJ_CHECK(t->read(u, c->fd, NULL, 4) == -1 && errno == EFAULT);
    NJ_CHECK(t->recv(u, c->fd, NULL, 4, MSG_PEEK) == -1 && errno == EFAULT);
    NJ_CHECK(t->recvfrom(u, c->fd, NULL, 4, 0, NULL, NULL) == -1 && errno == EFAULT);
    NJ_CHECK(t->readv(u, c->fd, &none, 1) == -1 && errno == EFAULT);
    NJ_CHECK(t->readv(u, c->fd, NULL, 1) == -1 && errno == EFAULT);
    NJ_CHECK(t->recvmsg(u, c->fd, &msg, 0) == -1 && errno == EFAULT);
    NJ_CHECK(t->recvmsg(u, c->fd, &no_iov, 0) == -1 && errno == EFAULT);
    NJ_CHECK(t->recvmsg(u, c->fd, NULL, 0) == -1 && errno == EFAULT);
    NJ_CHECK(t->read(u, c->fd, data, 4) == 4 && memcmp(data, "what", 4) == 0); /* all still there */
    send_seg(c, NJ_TCP_PSH | NJ_TCP_ACK, 5, 1, 4);
    NJ_CHECK(t->recv(u, c->fd, NULL, 4, MSG_TRUNC) == 4); /* tcp(7): discarded */
    NJ_CHECK(t->write(u, c->fd, NULL, 4) == -1 && errno == EFAULT);
    NJ_CHECK(t->write(u, c->fd, NULL, 0) == 0);
    NJ_CHECK(t->send(u, c->fd, NULL, 4, 0) == -1 && errno == EFAULT);
    NJ_CHECK(t->sendto(u, c->fd, NULL, 4, 0, NULL, 0) == -1 && errno == EFAULT);
    NJ_CHECK(t->writev(u, c->fd, &none, 1) == -1 && errno == EFAULT);
    NJ_CHECK(t->writev(u, c->fd, &empty, 1) == 0);
    NJ_CHECK(t->writev(u, c->fd, NULL, 1) == -1 && errno == EFAULT);
    NJ_CHECK(t->sendmsg(u, c->fd, &msg, 0) == -1 && errno == EFAULT);
    NJ_CHECK(t->sendmsg(u, c->fd, NULL, 0) == -1 && errno == EFAULT);
    NJ_CHECK(t->getsockopt(u, c->fd, SOL_SOCKET, SO_ERROR, NULL, &n) == -1 && errno == EFAULT);
    NJ_CHECK(t->getsockopt(u, c->fd, SOL_SOCKET, SO_ERROR, data, NULL) == -1 && errno == EFAULT);
    NJ_CHECK(t->setsockopt(u, c->fd, SOL_SOCKET, SO_REUSEADDR, NULL, 4) == -1 && errno == EFAULT);
    NJ_CHECK(t->setsockopt(u, c->fd, SOL_SOCKET, SO_LINGER, NULL, 8) == -1 && errno == EFAULT);
    NJ_CHECK(t->ioctl(u, c->fd, FIONREAD, NULL) == -1 && errno == EFAULT);
    NJ_CHECK(t->poll(u, NULL, 1, 0) == -1 && errno == EFAULT);
    NJ_CHECK(t->epoll_ctl(u, c->left_open, EPOLL_CTL_ADD, c->fd, NULL) == -1 && errno == EFAULT);
    NJ_CHECK(t->epoll_wait(u, c->left_open, NULL, 1, 0) == -1 && errno == EFAULT);
    NJ_CHECK(t->bind(u, c->listener, NULL, 16) == -1 && errno == EFAULT);
    NJ_CHECK(t->connect(u, c->fd, NULL, 16) == -1 && errno == EFAULT);
    NJ_CHECK(t->netdev_send(u, NULL, 40) == -1 && errno == EFAULT);
    want_seg(c, NJ_TCP_ACK, 0); /* of the eight bytes */
}

/* Longer than the MTU, as after a device or a kernel that joins segments; up to the limit of IP. */
static void check_large_segment(struct check *c)
{
    static uint8_t data[LARGE];

    send_seg(c, NJ_TCP_PSH | NJ_TCP_ACK, 9, 1, LARGE);
    want_seg(c, NJ_TCP_ACK, 0);
    NJ_CHECK(c->last.ack == ISN + 9 + LARGE);
    NJ_CHECK(c->t.read(c->t.userdata, c->fd, data, sizeof data) == LARGE);
    NJ_CHECK(memcmp(data, "what the peer says", 18) == 0);
    c->seq = 9 + LARGE - 1; /* offset of the peer's numbers from here on */
}

static void check_options(struct check *c)
{
    struct tcp_info info;
    socklen_t n = sizeof info;
    int one = 1;

    NJ_CHECK(c->t.getsockopt(c->t.userdata, c->fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0);
    NJ_CHECK(n == sizeof info && info.tcpi_state == 1 && info.tcpi_snd_cwnd >= 10);
    NJ_CHECK(c->t.setsockopt(c->t.userdata, c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) ==
             0);
    NJ_CHECK(c->t.setsockopt(c->t.userdata, c->fd, IPPROTO_TCP, TCP_FASTOPEN, &one, sizeof one) ==
                 -1 &&
             errno == ENOPROTOOPT);
    NJ_CHECK(c->t.read(c->t.userdata, STDERR_FILENO, &info, 1) == -1 && errno == EBADF);
}

/* Before each code in a script the stock runner asks for these three, with the sizes of its own
 * copies of the kernel's structs, and ends with an error if one is refused or shorter. Its TCP_INFO
 * has 280 bytes, as Linux 6.18's; that of older headers has fewer. */
static void check_what_code_asks(struct check *c)
{
    struct tcp_info info;
    uint8_t data[512], cc[20]; /* the longest struct of TCP_CC_INFO, BBR's */
    uint32_t mem[SK_MEMINFO_VARS];
    socklen_t sizes[] = {280, sizeof data};
    socklen_t n = sizeof mem;

    for (size_t i = 0; i < RTE_DIM(sizes); i++) {
        socklen_t n_info = sizes[i];
        memset(data, 0xff, sizeof data);
        NJ_CHECK(c->t.getsockopt(c->t.userdata, c->fd, IPPROTO_TCP, TCP_INFO, data, &n_info) == 0);
        NJ_CHECK(n_info == sizes[i] && data[n_info - 1] == 0);
        memcpy(&info, data, sizeof info);
        NJ_CHECK(info.tcpi_state == 1 && info.tcpi_snd_cwnd >= 10);
    }
    NJ_CHECK(c->t.getsockopt(c->t.userdata, c->fd, SOL_SOCKET, SO_MEMINFO, mem, &n) == 0);
    NJ_CHECK(n == sizeof mem && mem[SK_MEMINFO_RMEM_ALLOC] == 1); /* the byte not read yet */
    NJ_CHECK(mem[SK_MEMINFO_RCVBUF] > 0 && mem[SK_MEMINFO_SNDBUF] > 0);
    NJ_CHECK(mem[SK_MEMINFO_WMEM_QUEUED] == 0 && mem[SK_MEMINFO_DROPS] == 0);
    n = sizeof cc;
    NJ_CHECK(c->t.getsockopt(c->t.userdata, c->fd, IPPROTO_TCP, TCP_CC_INFO, cc, &n) == 0);
    NJ_CHECK(n == 0);
}

/* For code in scripts the stock runner asks the kernel for TCP_INFO, not the table. With the
 * object preloaded, that call arrives here. Other descriptors are passed to the kernel. */
static void check_preloaded(struct check *c)
{
    struct tcp_info info = {0}, same = {0};
    socklen_t n = sizeof info, n_same = sizeof same;
    int type = 0, fd = socket(AF_INET, SOCK_STREAM, 0);

    NJ_CHECK(getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0);
    NJ_CHECK(c->t.getsockopt(c->t.userdata, c->fd, IPPROTO_TCP, TCP_INFO, &same, &n_same) == 0);
    NJ_CHECK(n == n_same && info.tcpi_state == 1 && info.tcpi_snd_cwnd == same.tcpi_snd_cwnd);
    n = sizeof type;
    NJ_CHECK(fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &type, &n) == 0 && type == AF_INET);
    NJ_CHECK(getsockopt(-1, SOL_SOCKET, SO_TYPE, &type, &n) == -1 && errno == EBADF);
    close(fd);
}

static void check_fin(struct check *c)
{
    uint8_t data[8];

    NJ_CHECK(c->t.shutdown(c->t.userdata, c->fd, SHUT_WR) == 0);
    want_seg(c, NJ_TCP_FIN | NJ_TCP_ACK, 0);
    NJ_CHECK(c->t.write(c->t.userdata, c->fd, data, 1) == -1 && errno == EPIPE);
    NJ_CHECK(c->t.read(c->t.userdata, c->fd, data, 8) == 1);
    send_seg(c, NJ_TCP_FIN | NJ_TCP_ACK, 2 + DATA, 2 + DATA, 0);
    want_seg(c, NJ_TCP_ACK, 0);
    NJ_CHECK(c->last.ack == ISN + c->seq + 3 + DATA);
    NJ_CHECK(c->t.read(c->t.userdata, c->fd, data, 8) == 0);
    NJ_CHECK(c->t.close(c->t.userdata, c->fd) == 0);
    NJ_CHECK(c->t.close(c->t.userdata, c->fd) == -1 && errno == EBADF);
    /* TIME_WAIT sends nothing more, and a waiting receive returns. */
    size_t n = sizeof c->bytes;
    long long at_us;
    NJ_CHECK(c->t.netdev_receive(c->t.userdata, c->bytes, &n, &at_us) == 0 && n == 0);
}

/* free() makes blocked calls return. */
static void check_free(struct check *c)
{
    pthread_t thread;
    void *returned_us;

    NJ_CHECK(pthread_create(&thread, NULL, accept_in_thread, c) == 0);
    c->t.usleep(c->t.userdata, 1000);
    NJ_CHECK(c->t.close(c->t.userdata, c->listener) == 0);
    NJ_CHECK(pthread_join(thread, &returned_us) == 0);
    free(returned_us);
    NJ_CHECK(c->fd == -1);
    NJ_CHECK(close(c->left_open) == 0); /* as the stock runner does before free() */
    c->t.free(c->t.userdata);
}

int main(int argc, char **argv)
{
    static struct check c;
    union {
        void *sym;
        void (*fn)(const char *, struct packetdrill_interface *);
    } init;
    void *so = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;

    NJ_CHECK(so);
    init.sym = dlsym(so, "packetdrill_interface_init");
    NJ_CHECK(init.sym);
    init.fn("no_such_word=1", &c.t);
    NJ_CHECK(!c.t.userdata);
    init.fn(NULL, &c.t);
    NJ_CHECK(c.t.userdata);
    for (size_t at = 0; at < sizeof c.t; at += sizeof(void *)) { /* no member is missing */
        void *member;
        memcpy(&member, (char *)&c.t + at, sizeof member);
        NJ_CHECK(member);
    }
    check_clock(&c);
    listen_on(&c);
    check_handshake(&c);
    check_descriptors(&c);
    check_no_buffer(&c);
    check_large_segment(&c);
    check_data(&c);
    check_epoll(&c);
    check_options(&c);
    check_what_code_asks(&c);
    if (getenv("LD_PRELOAD"))
        check_preloaded(&c);
    check_fin(&c);
    check_free(&c);
    puts("the table works");
    return 0;
}
