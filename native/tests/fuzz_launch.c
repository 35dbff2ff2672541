/* Fuzzes what a launcher reads: the request, and what comes later of the disk. Linked with launch/request.c and shared/frames.c alone.
   fuzz_launch <seconds> [seed] */
#include "../launch/steps.h"
#include "invent.h"

#include <stdarg.h>
#include <stdio.h>

static size_t launches, disks;

int failed(struct launch *launch, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(launch->step, sizeof launch->step, format, arguments);
  va_end(arguments);
  launch->error = 1;
  return -1;
}

static const char *const sound[] = {
    "sandbox=s1", "mode=root", "uid_base=70000", "uid_count=65536", "hostname=h", "socket=/run/s", "logs=/logs", "run=/run", "privileges=drop", "root=overlay",
    "tree=system|/", "tree=volume|/v", "mount=overlay|/|@volume/upper|@volume/work|@system", "mount=bind|/p|@volume/p|rw,file", "read_only=/p",
};

static const char *const words[] = {
    "mode=user", "mode=", "map_uid=1000", "map_gid=1000", "uid_base=5", "uid_base=-1", "uid_base=4294967294", "uid_count=0", "uid_count=99999999999999999999", "socket=s", "socket=",
    "more_uid=70000|80000", "more_uid=70000", "more_gid=|", "more_gid=-1|-1", "more_uid=4294967295|4294967295", "rlimit=core|0|0",
    "rlimit=nproc|unlimited|x", "rlimit=||", "rlimit=as|1", "forward=80|name", "forward=0|name", "forward=80|../name", "forward=80|", "forward=",
    "direct=egress", "direct=a/b", "direct=", "memory=1", "memory=-1", "cpus=65536", "range=4294967296", "range=x", "work_cgroup=/a", "init_cgroup=/b", "cgroup_view=cpu|/c",
    "cgroup_view=.|/c", "cgroup_view=a/b|/c", "tree=x", "tree=x|y", "tree=|/", "mount=", "mount=|", "mount=dir|/d|755", "mount=dir|x|755",
    "mount=tmpfs|/t|755|1m", "mount=symlink|/l|", "mount=symlink|/l", "mount=overlay|@u|||@system", "mount=overlay|@|||@",
    "mount=bind|/p|/x|ro,", "mount=bind|/p|/x|rosy", "mount=overlay|/|||1|2|3", "read_only=", "read_only=x", "root=tmpfs", "root=x", "=", "x",
};

/* `|` stands for the byte between parts. */
static size_t put_parts(char *at, const char *word) {
  size_t length = put_word(at, word);
  for (size_t index = 0; index < length; index++)
    if (at[index] == '|') at[index] = PART;
  return length;
}

static size_t some_fields(char *at) {
  size_t length = 0;
  bool whole = !once_in(4);
  for (size_t index = 0; whole && index < sizeof sound / sizeof *sound; index++)
    if (!once_in(64)) length += put_parts(at + length, sound[index]);
  /* Now and then more of one kind than there is room for. */
  size_t count = below(4), same = once_in(32) ? below(sizeof words / sizeof *words) : SIZE_MAX;
  if (same != SIZE_MAX) count = 1100;
  for (; count > 0; count--) length += put_parts(at + length, words[same != SIZE_MAX ? same : below(sizeof words / sizeof *words)]);
  return once_in(4) ? spoil(at, length) : length;
}

static void touch(const char *text) {
  volatile size_t length = text == NULL ? 0 : strlen(text);
  (void)length;
}

/* What the steps after it rely on. */
static void check_launch(const struct launch *launch) {
  if (launch->root_mode && (launch->uid_base < 65536 || launch->uid_count == 0 || launch->uid_base + launch->uid_count < launch->uid_base)) abort();
  if (launch->socket[0] != '/' || launch->more_uids.count > IDS_MOST || launch->more_gids.count > IDS_MOST) abort();
  if (launch->work_cgroup_count > CGROUPS_MOST || launch->init_cgroup_count > CGROUPS_MOST || launch->view_count > CGROUPS_MOST) abort();
  for (size_t at = 0; at < launch->plan.forward_count; at++)
    if (launch->plan.forwards[at].port == 0 || strchr(launch->plan.forwards[at].name, '/') != NULL) abort();
  for (size_t at = 0; at < launch->view_count; at++)
    if (launch->views[at].path[0] != '/' || launch->views[at].name[0] == '.' || strchr(launch->views[at].name, '/') != NULL) abort();
  for (size_t at = 0; at < launch->more_uids.count; at++)
    if (launch->more_uids.list[at].outside < 65536) abort();
  touch(launch->logs);
  launches++;
}

static void check_disk(const struct launch *launch) {
  touch(launch->hostname);
  if (launch->tree_count > TREES_MOST || launch->mount_count > MOUNTS_MOST || launch->read_only_count > MOUNTS_MOST) abort();
  if (!launch->tmpfs_root && (launch->mount_count == 0 || strcmp(launch->mounts[0].parts[1], "/") != 0)) abort();
  for (size_t at = 0; at < launch->tree_count; at++)
    if (launch->trees[at].path[0] != '/') abort();
  for (size_t at = 0; at < launch->mount_count; at++) {
    const struct mount_entry *entry = &launch->mounts[at];
    if (entry->count < 3 || entry->count > LAYERS_MOST + 4 || (entry->parts[1][0] != '/' && (entry->parts[1][0] != '@' || !launch->root_mode))) abort();
    for (size_t part = 0; part < entry->count; part++) touch(entry->parts[part]);
  }
  disks++;
}

static struct fields invent(char **data) {
  static char room[1 << 18];
  size_t length = some_fields(room);
  *data = exactly(room, length);
  return (struct fields){.data = *data, .length = length};
}

int main(int argc, char **argv) {
  static struct launch launch;
  time_t end = fuzz_begin(argc, argv);
  size_t runs = 0;
  for (; time(NULL) < end; runs++) {
    char *first, *second;
    struct fields request = invent(&first), disk = invent(&second);
    char *copy = malloc(request.length + 1), *later = malloc(disk.length + 1);
    memset(&launch, 0, sizeof launch);
    /* The helper and the launcher let no others through. */
    if (fields_valid(&request) && parse_launch(&launch, &request, copy) == 0) {
      check_launch(&launch);
      if (fields_valid(&disk) && parse_disk(&launch, &disk, later) == 0) check_disk(&launch);
    }
    free(first);
    free(second);
    free(copy);
    free(later);
  }
  printf("runs=%zu acts=%zu\n", runs, launches < disks ? launches : disks);
  return 0;
}
