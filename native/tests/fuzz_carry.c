/* Fuzzes what the front does when it moves a file: a server and a process 1 that say anything, and hand over any descriptor. Linked with
   front/carry.c, front/handed.c, front/bytes.c and shared/frames.c alone, where `exit` is fuzz_exit. fuzz_carry <seconds> [seed] */
#include "../front/carry.h"
#include "invent.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define HERE 3
#define REPORT 4
#define OURS 5 /* descriptors from here on are of one run */
#define MOST 5000

const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; } /* a run that is broken off leaves what it held */

void fuzz_exit(int code) __attribute__((noreturn));

static jmp_buf ended;
static int server_end, cell_end;
static bool is_bounded; /* the server says what it means to say of the bound */
static size_t carried, refused;

void fuzz_exit(int code) { longjmp(ended, code + 1); }
bool hand_over(int server, const struct output *request) { return server >= 0 && request->length > 0; }
int connect_to(const char *path) {
  if (strcmp(path, "/server") == 0) return dup(server_end);
  return strlen(path) < 100 ? dup(cell_end) : -1;
}

static int file_of(size_t size, int flags) {
  static char content[1 << 14];
  char path[64];
  int fd = memfd_create("fuzz", 0);
  memset(content, 'i', sizeof content);
  if (write(fd, content, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) != 0) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return flags == O_RDWR ? fd : open(path, flags);
}

/* A file as it should be, or something else. */
static int some_descriptor(bool into) {
  int ends[2];
  switch (below(10)) {
    case 0: return open("/dev/zero", O_RDWR); /* has no end */
    case 1: return pipe(ends) == 0 ? ends[below(2)] : -1;
    case 2: return open("/", O_RDONLY | O_DIRECTORY);
    case 3: return open("/proc/self/status", O_RDONLY);
    case 4: return file_of(below(9000), into ? O_RDONLY : O_WRONLY);
    case 5: return socket(AF_UNIX, SOCK_STREAM, 0);
    default: return file_of(below(9000), once_in(2) ? O_RDWR : into ? O_WRONLY : O_RDONLY);
  }
}

static void send_with(int to, const char *data, size_t size, const int *descriptors, size_t count) {
  union {
    char room[CMSG_SPACE(4 * sizeof(int))];
    struct cmsghdr align;
  } control = {0};
  struct iovec part = {(void *)data, size};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (count > 0) {
    message.msg_control = control.room;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(count * sizeof(int))};
    memcpy(CMSG_DATA(header), descriptors, count * sizeof(int));
  }
  if (size > 0 && sendmsg(to, &message, 0) < 0) abort();
}

static int scripted(const char *data, size_t size, const int *descriptors, size_t count) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) abort();
  send_with(ends[1], data, size, descriptors, count);
  shutdown(ends[1], SHUT_WR);
  return ends[0];
}

static int server_says(bool sound) {
  static const char *const answers[] = {"node=1", "refused={}", "most=5", "most=-1", "cell=", "cell=/cell", "done={}", "=", "x"};
  char data[4096], payload[512];
  size_t size = 0, length = put_word(payload, "cell=/cell");
  length += put_word(payload + length, "most=5000");
  if (!sound && once_in(4)) length = put_word(payload, answers[below(sizeof answers / sizeof *answers)]);
  size += put_frame(data + size, REPLY, payload, length);
  size += put_frame(data + size, !sound && once_in(16) ? REPLY : REQUEST, payload, below(500));
  length = put_word(payload, sound || !once_in(4) ? "done={}" : answers[below(sizeof answers / sizeof *answers)]);
  size += put_frame(data + size, REPLY, payload, length);
  is_bounded = sound || once_in(2);
  return scripted(data, is_bounded ? size : spoil(data, size), NULL, 0);
}

static int cell_says(bool into, bool sound, int inside) {
  char data[4096], payload[512];
  int descriptors[] = {inside, inside, inside};
  size_t size = 0, length = put_word(payload, "ok=1");
  if (sound || !once_in(8)) length += put_word(payload + length, "handed=1");
  size += put_frame(data + size, !sound && once_in(8) ? ERROR : REPLY, payload, length);
  if (into) size += put_frame(data + size, REPLY, payload, length);
  else size += put_frame(data + size, END, NULL, 0);
  if (sound) return scripted(data, size, descriptors, 1);
  return scripted(data, spoil(data, size), descriptors, once_in(8) ? below(4) : 1);
}

/* What was moved is one to one, and never more than allowed. */
static void check(int code, bool into, bool sound, int inside, off_t size, off_t here) {
  struct stat now;
  if (sound && code != 0 && (into ? here : size) <= MOST) abort();
  if (code == 0) carried++;
  if (code == 1) refused++;
  if (fstat(HERE, &now) != 0 || (is_bounded && !into && now.st_size > MOST)) abort();
  if (sound && code == 0 && fstat(into ? inside : HERE, &now) == 0 && now.st_size < (into ? here : size)) abort();
}

static void run(void) {
  static bool into, sound;
  static int inside, code;
  static struct stat before, here;
  into = once_in(2);
  sound = once_in(4);
  inside = sound ? file_of(1 + below(9000), O_RDWR) : some_descriptor(into);
  int file = file_of(into ? below(9000) : 0, O_RDWR);
  if (inside < 0 || file < 0 || dup2(file, HERE) != HERE || fstat(inside, &before) != 0 || fstat(HERE, &here) != 0) abort();
  if (into && sound && ftruncate(inside, 0) != 0) abort();
  server_end = server_says(sound);
  cell_end = cell_says(into, sound, inside);
  char *words[] = {"/server", into ? "write" : "read", "s1", "/a", once_in(2) ? "user=root" : NULL, NULL};
  code = setjmp(ended);
  code = code == 0 ? carry(words) : code - 1;
  check(code, into, sound, inside, before.st_size, here.st_size);
  close_range(OURS, ~0u, 0);
}

int main(int argc, char **argv) {
  static size_t runs;
  static time_t end;
  end = fuzz_begin(argc, argv);
  /* What the front prints is not the report. */
  if (dup2(STDOUT_FILENO, REPORT) != REPORT) return 2;
  if (dup2(open("/dev/null", O_RDWR), STDOUT_FILENO) != STDOUT_FILENO || dup2(STDOUT_FILENO, HERE) != HERE) return 2;
  for (; time(NULL) < end; runs++) run();
  dprintf(REPORT, "runs=%zu acts=%zu refused=%zu\n", runs, carried, refused);
  return 0;
}
