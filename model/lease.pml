/*
 * One store and its claimants: claim, renew, release, fence, and a register that is written to. Read docs/model.md first.
 *
 * An acquisition is all that one token does (rule 2); a client that tries again later is another one. Nothing forces an
 * acquisition to move, so that each may be paused anywhere, for any time.
 *
 * A request that was sent stays in the network: it may be executed never, once or many times, and in any order with
 * others. Its answer is a field of the request, and may be read at any time or never. So a request or an answer is lost,
 * delayed, repeated or overtaken wherever that is possible at all.
 *
 * Time is a tick that all countdowns hear. The store's clock and the holder's run apart by DRIFT in a ttl: the holder's
 * countdown starts as much higher.
 */
#ifndef ACQUISITIONS
#define ACQUISITIONS 2
#endif
#ifndef CLAIMS
#define CLAIMS 2     /* a token is claimed so often: the answer to the first may be lost */
#endif
#ifndef RENEWALS
#define RENEWALS 1   /* so many are in the network at once; another takes the place of the oldest */
#endif
#ifndef TTL
#define TTL 4
#endif
#define PATIENCE 2
#define DRIFT 1

#ifdef NO_MARGIN
#define MARGIN 0
#else
#define MARGIN 1     /* ttl / 6 */
#endif
#define TRUSTED (TTL - MARGIN + DRIFT)

#define NOBODY ACQUISITIONS
#define ALL(i) i : 0 .. ACQUISITIONS - 1

mtype:phase = { idle, claiming, held, over };
mtype:answer = { none, renewed, gone };

typedef Claim {
  byte due;      /* the store refuses it when this is 0 */
  byte earns;    /* the trust that is left of it: counted from before it was sent (rule 3) */
  byte fence;    /* its answer, 0 when there is none */
  bool old       /* answered before the failover */
};

typedef Renewal {
  bool sent;
  byte earns;
  mtype:answer answer
};

typedef Acquisition {
  mtype:phase phase = idle;
  byte trust;
  byte fence;
  bool wrote;    /* its write is in the network */
  bool old;      /* granted before the failover */
  Claim claim[CLAIMS];
  byte claims;
  Renewal renewal[RENEWALS];
  byte renewals;
  byte leftover; /* given up: by then the store must have forgotten it */
  bool freed     /* its release was executed */
};

Acquisition acq[ACQUISITIONS];

/* The store. */
byte owner = NOBODY, left, counter;

/* What was seen, for the invariants. */
byte highest, accepted;
#ifdef GATE_OFF
#define ADMITS(fence) true
#else
#define ADMITS(fence) (fence >= mark)
#endif
byte mark;

#ifdef FAILOVER
byte replicaOwner = NOBODY, replicaLeft, replicaCounter;
bool failedOver, isBehind;
#endif

#define TRUSTS(i) (acq[i].phase == held && acq[i].trust > 0)
#define OWNS(i) (owner == i && left > 0)
#define LESS(count) count = (count > 0 -> count - 1 : 0)

inline max(into, value) { if :: into < value -> into = value :: else fi }

/* Seen at least once, or the model shows nothing: each is searched for by a version of its own. */
#ifndef SEES
#define SEES 0
#endif
#define SEEN(condition, what) assert(SEES != what || !(condition))
#define ANSWER_TO_RETRY 1
#define RENEWAL 2
#define TAKEN_OVER 3
#define LATE_RELEASE 4
#define LEFTOVER 5
#define STALE_WRITE_REFUSED 6
#define TWO_AFTER_FAILOVER 7
#define TOLD_GONE 8

/* Trust begins or is extended: nobody else may have any. The only exception is who was granted it by a store that has
   failed over since, and that one is alone among its like. */
inline assertAlone(me) {
  for (ALL(other)) {
    if
    :: other != me && TRUSTS(me) && TRUSTS(other) ->
#ifdef FAILOVER
      SEEN(true, TWO_AFTER_FAILOVER);
      assert(acq[me].old != acq[other].old)
#else
      assert(false)
#endif
    :: else
    fi
  }
  other = 0
}

inline end(me) {
  printf("%d is over\n", me);
  acq[me].phase = over;
  acq[me].trust = 0;
  acq[me].fence = (acq[me].wrote -> acq[me].fence : 0);
#ifndef LOSS_NOT_FINAL
  for (i : 0 .. RENEWALS - 1) {
    acq[me].renewal[i].answer = none;
    acq[me].renewal[i].earns = 0
  }
#endif
  forgetClaims(me)
}

/* What is left in the network of one that is over and can be granted nothing any more changes nothing: one state, not many. */
inline forgetOver(me) {
#if !defined(NO_DEADLINE) && !defined(RECREATES)
  if
  :: acq[me].phase == over && !OWNS(me) && acq[me].claim[0].due == 0 && acq[me].claim[CLAIMS - 1].due == 0 ->
    acq[me].claims = 0;
    acq[me].renewals = 0;
    acq[me].old = false;
    for (i : 0 .. RENEWALS - 1) { acq[me].renewal[i].sent = false }
    i = 0
  :: else
  fi
#endif
  skip
}

inline sendClaim(me) {
  printf("%d claims\n", me);
  acq[me].claim[acq[me].claims].due = PATIENCE;
  acq[me].claim[acq[me].claims].earns = TRUSTED;
  acq[me].claims++
}

#ifdef TRUST_FROM_ANSWER
#define EARNED(request) TRUSTED
#else
#define EARNED(request) request.earns
#endif

#define READS_GRANT(n) d_step { \
    acq[me].phase == claiming && acq[me].claim[n].fence > 0 && acq[me].claim[n].earns > 0 -> \
    acq[me].phase = held; \
    acq[me].fence = acq[me].claim[n].fence; \
    acq[me].old = acq[me].claim[n].old; \
    acq[me].trust = EARNED(acq[me].claim[n]); \
    forgetClaims(me); \
    printf("%d holds it, fence %d\n", me, acq[me].fence); \
    SEEN(n == 1, ANSWER_TO_RETRY); \
    SEEN(me == 1 && acq[0].phase == held, TAKEN_OVER); \
    assertAlone(me) \
  }

/* Loss is final (rule 5): a success that comes after it changes nothing. */
#ifdef LOSS_NOT_FINAL
#define HEARS_OF_RENEWAL(me) (acq[me].phase == held || acq[me].phase == over)
#define MAY_GO_ON(me) true
#else
#define HEARS_OF_RENEWAL(me) (acq[me].phase == held)
#define MAY_GO_ON(me) acq[me].trust > 0
#endif

#define READS_RENEWAL(n) d_step { \
    HEARS_OF_RENEWAL(me) && acq[me].renewal[n].answer != none -> \
    if \
    :: acq[me].renewal[n].answer == gone -> SEEN(TRUSTS(me), TOLD_GONE); end(me) \
    :: acq[me].renewal[n].answer == renewed && MAY_GO_ON(me) && EARNED(acq[me].renewal[n]) > acq[me].trust -> \
      acq[me].phase = held; \
      acq[me].trust = EARNED(acq[me].renewal[n]); \
      printf("%d hears that it is renewed\n", me); \
      SEEN(acq[me].trust > 0, RENEWAL); \
      assertAlone(me) \
    :: else \
    fi; \
    acq[me].renewal[n].answer = none; \
    acq[me].renewal[n].earns = 0 \
  }

#ifdef NO_DEADLINE
#define IN_TIME(n) acq[me].claims > n
#else
#define IN_TIME(n) acq[me].claim[n].due > 0
#endif

#define RECEIVES_CLAIM(n, reading) d_step { \
    IN_TIME(n) && (OWNS(me) || left == 0) -> \
    if \
    :: !OWNS(me) -> grant(me, reading) \
    :: else \
    fi; \
    left = TTL; \
    acq[me].claim[n].due = 0; \
    if \
    :: acq[me].phase == claiming && acq[me].claim[n].earns > 0 -> acq[me].claim[n].fence = ANSWER \
    :: else \
    fi \
  }

#define RECEIVES_RENEWAL(n) d_step { \
    acq[me].renewal[n].sent -> \
    if \
    :: OWNS(me) || MAY_CREATE -> owner = me; left = TTL; printf("the store renews it for %d\n", me) \
    :: else \
    fi; \
    if \
    :: HEARS_OF_RENEWAL(me) -> acq[me].renewal[n].answer = (OWNS(me) -> renewed : gone) \
    :: else \
    fi \
  }

#ifdef WRITES
#define ANSWER counter
#else
#define ANSWER 1   /* that it is granted */
#endif

#ifdef RECREATES
#define MAY_CREATE left == 0
#else
#define MAY_CREATE false
#endif

#ifdef FAILOVER
/* The first grant after it: clocks agree well enough that the new one is past all that the old one gave. */
#define READ(reading) (isBehind -> highest + 1 : reading)
#else
#define READ(reading) reading
#endif

#ifdef COUNTER_ONLY
#define NEXT(reading) counter + 1
#elif defined(TIME_ONLY)
#define NEXT(reading) READ(reading)
#else
#define NEXT(reading) (counter + 1 > READ(reading) -> counter + 1 : READ(reading))
#endif

inline grant(me, reading) {
  counter = NEXT(reading);
#ifdef FAILOVER
  isBehind = false;
#endif
  owner = me;
  acq[me].freed = false;
  printf("the store grants it to %d, fence %d\n", me, counter);
  assert(counter > highest);
  highest = counter;
#ifndef WRITES
  /* Nobody has a fence to compare with: only what the store will compare counts. */
#ifdef FAILOVER
  replicaCounter = (replicaCounter + 1 > highest -> replicaCounter + 1 - highest : 0);
#endif
  counter = 1;
  highest = 1
#endif
}

#ifdef RELEASES_ANYTHING
#define MAY_FREE(me) left > 0
#else
#define MAY_FREE(me) OWNS(me)
#endif

inline free() { owner = NOBODY; left = 0 }

inline forgetClaims(me) {
  for (i : 0 .. CLAIMS - 1) {
    acq[me].claim[i].fence = 0;
    acq[me].claim[i].earns = 0;
    acq[me].claim[i].old = false
  }
  i = 0
}

proctype Client(byte me) {
  byte i, other;
  do
  /* They are all alike: the first one to begin is called the first. */
  :: d_step { acq[me].phase == idle && (me == 0 || acq[me - 1].phase != idle) -> acq[me].phase = claiming; sendClaim(me) }
  :: d_step { acq[me].phase == claiming && acq[me].claims < CLAIMS -> sendClaim(me) }
  :: READS_GRANT(0)
#if CLAIMS > 1
  :: READS_GRANT(1)
#endif
  /* Gives up, and tells the store so. */
  :: d_step {
      acq[me].phase == claiming ->
      acq[me].leftover = TTL;
      for (i : 0 .. CLAIMS - 1) { max(acq[me].leftover, TTL + acq[me].claim[i].due) }
      end(me)
    }
  :: d_step {
      TRUSTS(me) ->
      printf("%d renews\n", me);
      i = acq[me].renewals;
      acq[me].renewal[i].sent = true;
      acq[me].renewal[i].earns = TRUSTED;
      acq[me].renewal[i].answer = none;
      acq[me].renewals = (i + 1) % RENEWALS;
      i = 0
    }
  :: READS_RENEWAL(0)
#if RENEWALS > 1
  :: READS_RENEWAL(1)
#endif
#ifdef WRITES
  /* It looks at the clock and sends the write; when that arrives is not its business any more. */
  :: d_step { TRUSTS(me) && !acq[me].wrote -> printf("%d looks at the clock and sends its write\n", me); acq[me].wrote = true }
#endif
  /* Releases it, or finds that it is lost; the store is told either way. */
  :: d_step { acq[me].phase == held -> end(me) }
  od
}

/* Executes what is in the network of one acquisition. */
proctype Store(byte me) {
  do
  :: RECEIVES_CLAIM(0, 1)
  :: RECEIVES_CLAIM(0, highest + 1)
#if CLAIMS > 1
  :: RECEIVES_CLAIM(1, 1)
  :: RECEIVES_CLAIM(1, highest + 1)
#endif
  :: RECEIVES_RENEWAL(0)
#if RENEWALS > 1
  :: RECEIVES_RENEWAL(1)
#endif
#if SEES == LATE_RELEASE
  :: d_step { acq[me].phase == over && left > 0 && !OWNS(me) -> SEEN(TRUSTS(owner), LATE_RELEASE) }
#endif
  :: d_step { acq[me].phase == over && MAY_FREE(me) -> printf("the store frees it for %d\n", me); free(); acq[me].freed = true }
  od
}

#ifdef WRITES
/* The place that is written to. */
proctype Register(byte me) {
  do
  :: d_step {
      acq[me].wrote && ADMITS(acq[me].fence) ->
      printf("the write of %d arrives, fence %d\n", me, acq[me].fence);
      mark = acq[me].fence;
      assert(mark >= accepted);
      accepted = mark
    }
  :: d_step { SEES == STALE_WRITE_REFUSED && acq[me].wrote && !ADMITS(acq[me].fence) -> SEEN(true, STALE_WRITE_REFUSED) }
  od
}
#endif

#ifdef FAILOVER
/* Hears of what the store did, some time later, and takes its place once. If it never heard of anything, the data is lost. */
proctype Replica() {
  byte i, me;
  do
  :: d_step {
      !failedOver && (replicaOwner != owner || replicaLeft != left || replicaCounter != counter) ->
      printf("the replica hears of it\n");
      replicaOwner = owner;
      replicaLeft = left;
      replicaCounter = counter
    }
  :: d_step {
      !failedOver ->
      printf("the replica takes over\n");
      failedOver = true;
      isBehind = true;
      owner = replicaOwner;
      left = replicaLeft;
      counter = replicaCounter;
      replicaOwner = NOBODY;
      replicaLeft = 0;
      replicaCounter = 0;
      for (ALL(me)) {
        acq[me].old = acq[me].phase == held;
        for (i : 0 .. CLAIMS - 1) { acq[me].claim[i].old = acq[me].claim[i].fence > 0 }
      }
      me = 0; i = 0
    }
  od
}
#endif

proctype Time() {
  byte i, me;
  do
  :: d_step {
      printf("time passes\n");
      LESS(left);
      if :: left == 0 -> owner = NOBODY :: else fi;
#ifdef FAILOVER
      LESS(replicaLeft);
      if :: replicaLeft == 0 -> replicaOwner = NOBODY :: else fi;
#endif
      for (ALL(me)) {
        LESS(acq[me].trust);
        for (i : 0 .. CLAIMS - 1) {
          LESS(acq[me].claim[i].due);
          LESS(acq[me].claim[i].earns);
          if :: acq[me].claim[i].earns == 0 -> acq[me].claim[i].fence = 0; acq[me].claim[i].old = false :: else fi
        }
        for (i : 0 .. RENEWALS - 1) { LESS(acq[me].renewal[i].earns) }
        if
        :: acq[me].leftover == 1 -> assert(!OWNS(me))
        :: acq[me].leftover > 1 -> SEEN(OWNS(me), LEFTOVER)
        :: else
        fi;
#ifndef FAILOVER
        assert(!acq[me].freed || !OWNS(me));
#endif
        LESS(acq[me].leftover);
        forgetOver(me)
      }
      me = 0; i = 0
    }
  od
}

init {
  byte me;
  atomic {
    for (ALL(me)) {
      run Client(me);
      run Store(me);
#ifdef WRITES
      run Register(me)
#endif
    }
    me = 0;
#ifdef FAILOVER
    run Replica();
#endif
    run Time()
  }
}
