/* A step that looks at every entry by itself, on several processors. */
#include "apply.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

#define WORKERS_MAX 4
#define ENTRIES_MIN 128 /* for a worker; fewer are done before it has started */

struct worker {
  pthread_t thread;
  struct apply apply; /* a view of the whole with an answer of its own */
  struct answer answer;
  struct apply_room room;
  apply_step step;
  size_t from, to;
};

static void *work(void *argument) {
  struct worker *worker = argument;
  for (size_t index = worker->from; index < worker->to && !worker->answer.failed; index++)
    worker->step(&worker->apply, &worker->apply.entries[index]);
  apply_near_close(&worker->apply.near);
  return NULL;
}

/* Rows of all, in the order of the entries; of failures the first. */
static void take_answer(struct apply *apply, struct worker *worker) {
  struct answer *answer = apply->answer;
  size_t length = worker->answer.fields.length;
  if (length > 0 && answer->fields.length + length <= APPLY_ROWS_MAX) put_bytes(&answer->fields, worker->answer.fields.data, length);
  else if (length > 0) put(&answer->fields, "conflict", APPLY_MORE_ROWS, PART);
  output_free(&worker->answer.fields);
  if (!worker->answer.failed || answer->failed) return;
  struct output fields = answer->fields;
  *answer = worker->answer;
  answer->fields = fields;
}

static size_t worker_count(const struct apply *apply) {
  size_t processors = (size_t)get_nprocs(), wanted = apply->count / ENTRIES_MIN;
  /* What is the same file as an earlier entry needs that one first. */
  if (apply->twins != NULL || wanted < 2) return 1;
  if (wanted > processors) wanted = processors;
  return wanted > WORKERS_MAX ? WORKERS_MAX : wanted;
}

void apply_each(struct apply *apply, apply_step step) {
  size_t count = worker_count(apply);
  struct worker *workers = calloc(count, sizeof *workers);
  if (workers == NULL) abort();
  for (size_t index = 0; index < count; index++) {
    struct worker *worker = &workers[index];
    *worker = (struct worker){.apply = *apply, .step = step, .from = apply->count * index / count, .to = apply->count * (index + 1) / count};
    worker->apply.answer = &worker->answer;
    worker->apply.room = &worker->room;
    worker->apply.near = (struct apply_near){.folder = -1};
    /* The first part is done here, and so is one that gets no thread. */
    if (index == 0 || pthread_create(&worker->thread, NULL, work, worker) != 0) worker->thread = 0;
  }
  for (size_t index = 0; index < count; index++)
    if (workers[index].thread == 0) work(&workers[index]);
  for (size_t index = 0; index < count; index++) {
    if (workers[index].thread != 0) pthread_join(workers[index].thread, NULL);
    take_answer(apply, &workers[index]);
  }
  free(workers);
}
