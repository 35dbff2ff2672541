/* Two files of the host's: a list of changes, and the contents as blobs of git's fast-import stream. Sources are never reached through a link. */
#include "gather.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIST_MAX (64ll << 20)
#define TRIES 3
/* A small file that is not in memory takes the time of a round to the disk. So the kernel is asked for this many ahead. */
#define AHEAD 64

/* One side of a change, open for its content; source -1: it has none, or it can't be had. */
struct opened {
  int source;
  bool link, wanted;
  unsigned mode;
};

/* A change that is not written down yet. */
struct pending {
  char what;
  const char *type, *privilege;
  struct opened old, new;
  char *path;
};

struct gathering {
  FILE *list, *blobs;
  struct pending ahead[AHEAD]; /* a ring: `waiting` of them, the oldest at `next` */
  size_t next, waiting;
  int64_t most, total, bytes, listed;
  long long mark, skipped;
  char *buffer;
  int error; /* errno of a failed write */
};

static FILE *create(const char *path) {
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  return fd < 0 ? NULL : fdopen(fd, "w");
}

struct gathering *gather_open(const struct fields *request, struct answer *answer) {
  const char *list = field(request, "list"), *blobs = field(request, "blobs");
  if (list == NULL) return NULL;
  struct gathering *gathering = calloc(1, sizeof *gathering);
  if (gathering == NULL || (gathering->buffer = malloc(CHUNK_MAX)) == NULL) abort();
  gathering->total = INT64_MAX;
  bool numbers = blobs == NULL || (field_number(request, "most", &gathering->most) && field_number(request, "total", &gathering->total));
  if (!numbers) refuse(answer, "bad-request", EINVAL, "request", "most and total must be numbers");
  else if ((gathering->list = create(list)) == NULL) refuse_errno(answer, "list", list);
  else if (blobs != NULL && (gathering->blobs = create(blobs)) == NULL) refuse_errno(answer, "blobs", blobs);
  if (!answer->failed) return gathering;
  gather_close(gathering, answer);
  return NULL;
}

/* Writes exactly `length` bytes of a source that may change meanwhile; says how many there were. */
static int64_t copy_exactly(struct gathering *gathering, int source, int64_t length) {
  int64_t at = 0;
  while (at < length) {
    int64_t wanted = length - at < CHUNK_MAX ? length - at : CHUNK_MAX;
    ssize_t count = pread(source, gathering->buffer, (size_t)wanted, at);
    if (count <= 0) break;
    if (fwrite(gathering->buffer, 1, (size_t)count, gathering->blobs) != (size_t)count) {
      gathering->error = errno;
      break;
    }
    at += count;
  }
  return at;
}

/* Ends a blob that was cut short. The server may read along, so nothing is taken back. The number of the blob is used up, and no side names it. */
static void fill_up(struct gathering *gathering, int64_t missing) {
  memset(gathering->buffer, 0, CHUNK_MAX);
  for (; missing > 0 && !ferror(gathering->blobs); missing -= CHUNK_MAX)
    fwrite(gathering->buffer, 1, (size_t)(missing < CHUNK_MAX ? missing : CHUNK_MAX), gathering->blobs);
  fputc('\n', gathering->blobs);
  gathering->mark++;
}

static bool put_file(struct gathering *gathering, int source) {
  for (int tries = 0; tries < TRIES; tries++) {
    struct stat status;
    if (fstat(source, &status) != 0 || !S_ISREG(status.st_mode)) return false;
    if (status.st_size > gathering->most || status.st_size > gathering->total - gathering->bytes) return false;
    fprintf(gathering->blobs, "blob\nmark :%lld\ndata %lld\n", gathering->mark + 1, (long long)status.st_size);
    int64_t copied = copy_exactly(gathering, source, status.st_size);
    gathering->bytes += status.st_size;
    if (copied == status.st_size) {
      fputc('\n', gathering->blobs);
      return true;
    }
    if (gathering->error != 0) return false;
    fill_up(gathering, status.st_size - copied);
  }
  return false;
}

static bool put_link(struct gathering *gathering, int source) {
  char target[4096];
  ssize_t length = readlinkat(source, "", target, sizeof target);
  if (length < 0) return false;
  fprintf(gathering->blobs, "blob\nmark :%lld\ndata %zd\n", gathering->mark + 1, length);
  fwrite(target, 1, (size_t)length, gathering->blobs);
  fputc('\n', gathering->blobs);
  return true;
}

/* The mark of a side's content; 0 where it has none or it can't be had. */
static long long put_blob(struct gathering *gathering, const struct opened *side) {
  if (!side->wanted) return 0;
  bool done = side->source >= 0 && (side->link ? put_link(gathering, side->source) : put_file(gathering, side->source));
  if (side->source >= 0) close(side->source);
  if (!done) gathering->skipped++;
  return done ? ++gathering->mark : 0;
}

/* As git knows it; what git has no word for is 1. */
static unsigned mode_of(struct gather_side side) {
  if (side.path == NULL) return 0;
  mode_t mode = side.status->st_mode;
  if (S_ISREG(mode)) return mode & 0100 ? 0100755 : 0100644;
  if (S_ISLNK(mode)) return 0120000;
  return S_ISDIR(mode) ? 040000 : 1;
}

/* Whether a user who runs it would become another user or group. */
static const char *privilege_of(struct gather_side side) {
  return side.path != NULL && S_ISREG(side.status->st_mode) && (side.status->st_mode & (S_ISUID | S_ISGID)) != 0 ? ":s" : "";
}

static struct opened open_side(const struct gathering *gathering, struct gather_side side) {
  struct opened opened = {.source = -1, .mode = mode_of(side)};
  if (gathering->blobs == NULL || side.path == NULL) return opened;
  opened.link = S_ISLNK(side.status->st_mode);
  opened.wanted = opened.link || S_ISREG(side.status->st_mode);
  if (!opened.wanted) return opened;
  opened.source = open_beneath(side.root, side.path, opened.link ? O_PATH | O_NOFOLLOW : O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (opened.source >= 0 && !opened.link) posix_fadvise(opened.source, 0, CHUNK_MAX, POSIX_FADV_WILLNEED);
  return opened;
}

/* Writes down the oldest of those that wait. */
static void write_next(struct gathering *gathering) {
  struct pending *one = &gathering->ahead[gathering->next];
  long long old = put_blob(gathering, &one->old), new = put_blob(gathering, &one->new);
  int count = fprintf(gathering->list, "%c%c%s%c%o:%lld%c%o:%lld%s%c%s", one->what, PART, one->type, PART, one->old.mode, old, PART, one->new.mode, new, one->privilege, PART, one->path);
  fputc('\0', gathering->list);
  gathering->listed += count + 1;
  free(one->path);
  gathering->next = (gathering->next + 1) % AHEAD;
  gathering->waiting--;
}

bool gather_change(struct gathering *gathering, char what, const char *type, struct gather_side old, struct gather_side new, const char *path) {
  if (gathering->listed > LIST_MAX || gathering->error != 0) return false;
  if (gathering->waiting == AHEAD) write_next(gathering);
  struct pending *one = &gathering->ahead[(gathering->next + gathering->waiting++) % AHEAD];
  *one = (struct pending){what, type, privilege_of(new), open_side(gathering, old), open_side(gathering, new), strdup(path)};
  if (one->path == NULL) abort();
  return true;
}

void gather_kept(struct gathering *gathering, const char *path) {
  if (strcmp(path, ".") != 0) gather_change(gathering, 'K', "dir", (struct gather_side){0}, (struct gather_side){0}, path);
}

static void finish(FILE *file, int *error) {
  if (file == NULL) return;
  bool bad = ferror(file) != 0;
  if ((fclose(file) != 0 || bad) && *error == 0) *error = errno == 0 ? EIO : errno;
}

void gather_close(struct gathering *gathering, struct answer *answer) {
  if (gathering == NULL) return;
  while (gathering->waiting > 0) write_next(gathering);
  int error = gathering->error;
  finish(gathering->blobs, &error);
  finish(gathering->list, &error);
  if (!answer->failed && error != 0) {
    errno = error;
    refuse_errno(answer, "gather", "the changes can't be written down");
  }
  if (!answer->failed) {
    put(&answer->fields, "bytes", "%lld", (long long)gathering->bytes);
    put(&answer->fields, "skipped", "%lld", gathering->skipped);
  }
  free(gathering->buffer);
  free(gathering);
}
