/*
 * A lease on a majority of three nodes: docs/redlock.md, and the scripts of lib/stores/redlock/lua. Read docs/model.md first.
 *
 * As in lease.pml nothing forces anybody to move, and what was sent may be executed at any time, or never, or again. A
 * node executes a request and its answer is read in one step, or never: what is learnt may be used as late as one likes, so
 * that an answer which is under way for long is nothing else.
 *
 * The clocks that fences are made of say whatever they like, each time. Time that passes is the same for all.
 */
#define NODES 3
#ifndef ACQUISITIONS
#define ACQUISITIONS 2
#endif
#ifndef ROUNDS
#define ROUNDS 1     /* so often a token is claimed, and given back where it was granted in vain */
#endif
#ifndef RESTARTS
#define RESTARTS 0   /* nodes that lose their memory, one after the other */
#endif
#ifndef TTL
#define TTL 2
#endif
#define TRUSTED TTL  /* less the margin, and the holder's clock may be slow by as much */
#define PATIENCE 1   /* at most half of the ttl */
#define QUARANTINE TTL
#ifndef AHEAD
#define AHEAD 2      /* what a clock says that is ahead; others say 0 */
#endif

#ifdef MINORITY
#define MAJORITY 1
#else
#define MAJORITY 2
#endif

#define NOBODY ACQUISITIONS
#define ALL(i) i : 0 .. ACQUISITIONS - 1
#define EVERY(n) n : 0 .. NODES - 1

mtype:phase = { idle, asking, settling, held, over };

typedef Node {
  byte owner = NOBODY;
  byte left;
  byte fence;       /* its proposal, or what it was told */
  bool settled;     /* it was told */
  byte round;       /* the owner's, that it was claimed in last */
  byte high;
  bool votes = true;
  byte wait;        /* in quarantine */
  byte asked;       /* of which others it knows the highest fence */
  byte floor
};

typedef Acquisition {
  mtype:phase phase = idle;
  byte round;
  byte due;         /* the end of its patience */
  byte trust;       /* counted from before the first request left */
  byte granted;     /* by which nodes, as far as it knows */
  byte told;        /* which nodes took its fence */
  byte fence;
  byte settledBy;   /* which of them were told a fence before, and the highest of those */
  byte settled;
  byte staleFence;  /* of an earlier round; a request to settle it may be anywhere */
  bool renews;
  byte earns;       /* the trust that is left of the last renewal */
  byte renewed;     /* by which nodes */
  bool heals
};

Node node[NODES];
Acquisition acq[ACQUISITIONS];
byte restarts;
byte highest;       /* fence that was handed out */

#define BIT(n) (1 << n)
#define COUNT(set) ((set & 1) + ((set >> 1) & 1) + ((set >> 2) & 1))
#define TRUSTS(i) (acq[i].phase == held && acq[i].trust > 0)
#define OWNS(me, n) (node[n].owner == me)
#define LESS(count) count = (count > 0 -> count - 1 : 0)
#define HIGHER(a, b) (a > b -> a : b)

#ifndef SEES
#define SEES 0
#endif
#define SEEN(condition, what) assert(SEES != what || !(condition))
#define RENEWAL 1
#define HEALING 2
#define READMISSION 3
#define SECOND_ROUND 4
#define PARTIAL_GRANT 5
#define OTHER_MAJORITY 6

inline free(n) {
  node[n].owner = NOBODY;
  node[n].left = 0;
  node[n].fence = 0;
  node[n].settled = false;
  node[n].round = 0
}

inline assertAlone(me) {
  for (ALL(other)) { assert(other == me || !TRUSTS(other)) }
  other = 0
}

inline forgetRound(me) {
  acq[me].granted = 0;
  acq[me].told = 0;
  acq[me].settledBy = 0;
  acq[me].settled = 0
}

inline end(me) {
  printf("%d is over\n", me);
  SEEN(acq[me].phase == asking && acq[me].granted > 0 && highest > 0, PARTIAL_GRANT);
  acq[me].fence = (acq[me].phase == asking -> 0 : acq[me].fence);
  acq[me].phase = over;
  acq[me].trust = 0;
  acq[me].renewed = 0;
  forgetRound(me)
}

inline ask(me) {
  printf("%d claims\n", me);
  acq[me].phase = asking;
  acq[me].round++;
  acq[me].due = PATIENCE;
  acq[me].trust = TRUSTED;
  acq[me].fence = 0;
  forgetRound(me)
}

inline handOut(me) {
  printf("%d is handed out, fence %d\n", me, acq[me].fence);
  acq[me].phase = held;
  SEEN(acq[me].round > 1, SECOND_ROUND);
  SEEN(highest > 0 && acq[me].told == BIT(1) + BIT(2), OTHER_MAJORITY);
  acq[me].granted = 0;
  acq[me].told = 0;
  assertAlone(me);
  assert(acq[me].fence > highest);
  highest = acq[me].fence
}

#define HEALS_FOR 1     /* half of the ttl */

#ifdef HEALS_ANYTHING
#define MAY_HEAL(me, n) !OWNS(me, n)
#else
#define MAY_HEAL(me, n) node[n].owner == NOBODY
#endif

#define OWNED_BY(me) (OWNS(me, 0) + 2 * OWNS(me, 1) + 4 * OWNS(me, 2))
#define VOTING (node[0].votes + 2 * node[1].votes + 4 * node[2].votes)

#ifdef NO_FLOOR
#define ENOUGH 0
#elif defined(FLOOR_FROM_ONE)
#define ENOUGH 1
#else
#define ENOUGH 2
#endif

#ifdef FLOOR_TOO_EARLY
#define MAY_ASK(n) true
#else
#define MAY_ASK(n) node[n].wait == 0
#endif

#define ASKS(other) d_step { \
    !node[n].votes && MAY_ASK(n) && node[other].votes && (node[n].asked & BIT(other)) == 0 -> \
    printf("node %d is told of %d by node %d\n", n, node[other].high, other); \
    node[n].asked = node[n].asked | BIT(other); \
    node[n].floor = HIGHER(node[n].floor, node[other].high) \
  }

#if ROUNDS == 1
/* They are all alike: the first one to begin is called the first. */
#define MAY_BEGIN(me) (me == 0 || acq[me - 1].phase != idle)
#define ROUNDS_OF(me) 1
#else
/* One of them does so; what it meets is no different for the others. */
#define MAY_BEGIN(me) true
#define ROUNDS_OF(me) (me == 0 -> ROUNDS : 1)
#endif

/* One that may have been handed out stays the same (rule 2): a majority has it, and nobody else had the key since. */
#ifdef ONE_SETTLED_WINS
#define STAYS(me) acq[me].settledBy != 0
#else
#define STAYS(me) COUNT(acq[me].settledBy) >= MAJORITY
#endif

proctype Client(byte me) {
  byte other;
  do
  :: d_step { acq[me].phase == idle && MAY_BEGIN(me) -> ask(me) }
  /* A majority granted it. */
  :: d_step {
      acq[me].phase == asking && acq[me].due > 0 && COUNT(acq[me].granted) >= MAJORITY ->
      acq[me].fence = (STAYS(me) -> acq[me].settled : acq[me].fence);
      acq[me].settledBy = 0;
      acq[me].settled = 0;
#ifdef NO_WRITE_BACK
      handOut(me)
#else
      acq[me].phase = settling
#endif
    }
  /* A majority took its fence. */
  :: d_step {
      acq[me].phase == settling && acq[me].due > 0 && COUNT(acq[me].told) >= MAJORITY -> handOut(me)
    }
  /* Gives back what it was granted, and tries again. */
  :: d_step {
      (acq[me].phase == asking || acq[me].phase == settling) && acq[me].round < ROUNDS_OF(me) ->
      printf("%d gives back what it was granted\n", me);
      acq[me].staleFence = (acq[me].phase == settling -> acq[me].fence : acq[me].staleFence);
      ask(me)
    }
#ifndef NO_RENEWAL
  :: d_step {
      TRUSTS(me) ->
      printf("%d renews\n", me);
      acq[me].renews = true;
      acq[me].earns = TRUSTED;
      acq[me].renewed = 0;
      acq[me].heals = false
    }
  :: d_step {
      TRUSTS(me) && acq[me].renews && !acq[me].heals && COUNT(acq[me].renewed) >= MAJORITY ->
      printf("%d is renewed\n", me);
      SEEN(acq[me].earns > acq[me].trust, RENEWAL);
      acq[me].trust = HIGHER(acq[me].earns, acq[me].trust);
      acq[me].heals = true;
      acq[me].renewed = 0;
      assertAlone(me)
    }
#endif
  /* Gives up, releases it, is told that it is lost or finds that it is. */
  :: d_step { acq[me].phase != idle && acq[me].phase != over -> end(me) }
  od
}

/* They are all alike: the first one to do anything is called the first. */
byte used;
#define MAY_BE_USED(n) (n <= used)
inline use(n) { used = (n == used -> used + 1 : used) }

#define PROPOSES(reading) HIGHER(node[n].high + 1, reading)

inline vote(me, n) {
  acq[me].granted = acq[me].granted | BIT(n);
  acq[me].fence = HIGHER(acq[me].fence, node[n].fence);
  if
  :: node[n].settled ->
    acq[me].settledBy = acq[me].settledBy | BIT(n);
    acq[me].settled = HIGHER(acq[me].settled, node[n].fence)
  :: else
  fi
}

#define GRANTS(reading) d_step { \
    acq[me].due > 0 && node[n].votes && node[n].owner == NOBODY && MAY_BE_USED(n) -> \
    use(n); \
    node[n].owner = me; \
    node[n].fence = PROPOSES(reading); \
    node[n].settled = false; \
    node[n].left = TTL; \
    node[n].round = acq[me].round; \
    printf("node %d grants it to %d, proposes %d; the answer is lost\n", n, me, node[n].fence) \
  }

#define GRANTS_AND_TELLS(reading) d_step { \
    acq[me].phase == asking && acq[me].due > 0 && node[n].votes && node[n].owner == NOBODY && MAY_BE_USED(n) -> \
    use(n); \
    node[n].owner = me; \
    node[n].fence = PROPOSES(reading); \
    node[n].settled = false; \
    node[n].left = TTL; \
    node[n].round = acq[me].round; \
    printf("node %d grants it to %d, proposes %d\n", n, me, node[n].fence); \
    vote(me, n) \
  }

inline settle(n, told) {
  printf("node %d is told fence %d\n", n, told);
  node[n].fence = (node[n].settled -> HIGHER(told, node[n].fence) : told);
  node[n].settled = true;
  node[n].high = HIGHER(node[n].high, node[n].fence)
}

#define IS_SETTLING(me) (acq[me].phase != idle && acq[me].phase != asking && acq[me].fence > 0)

/* What is left of an earlier round of the same token finds that it has come too late. */
#ifdef GIVE_BACK_WITHOUT_ROUND
#define FREES_STALE(me, n) acq[me].round > 1
#else
#define FREES_STALE(me, n) node[n].round < acq[me].round
#endif
#ifdef SETTLE_WITHOUT_ROUND
#define SETTLES_STALE(me, n) true
#else
#define SETTLES_STALE(me, n) node[n].round < acq[me].round
#endif

/* The requests of one acquisition to one node, and what the node does with them. */
proctype Wire(byte me; byte n) {
  do
  :: GRANTS_AND_TELLS(0)
#if AHEAD > 0
  :: GRANTS_AND_TELLS(AHEAD)
#endif
#ifndef NO_LOST_VOTES
  :: GRANTS(0)
#if AHEAD > 0
  :: GRANTS(AHEAD)
#endif
#endif
  /* It has it already: the answer was lost, or it is of an earlier round. */
  :: d_step {
      acq[me].phase == asking && acq[me].due > 0 && node[n].votes && OWNS(me, n) && (acq[me].granted & BIT(n)) == 0 ->
      node[n].left = TTL;
      node[n].round = acq[me].round;
      printf("node %d has it for %d already, with %d\n", n, me, node[n].fence);
      vote(me, n)
    }
  :: d_step { IS_SETTLING(me) && OWNS(me, n) && node[n].votes -> settle(n, acq[me].fence) }
  :: d_step {
      acq[me].phase == settling && OWNS(me, n) && node[n].votes ->
      settle(n, acq[me].fence);
      acq[me].told = acq[me].told | BIT(n)
    }
  :: d_step { acq[me].phase == over && OWNS(me, n) -> printf("node %d frees it of %d\n", n, me); free(n) }
#if ROUNDS > 1
  :: d_step {
      acq[me].staleFence > 0 && OWNS(me, n) && node[n].votes && SETTLES_STALE(me, n) ->
      settle(n, acq[me].staleFence)
    }
  :: d_step {
      OWNS(me, n) && FREES_STALE(me, n) ->
      printf("node %d frees it of an earlier round of %d\n", n, me);
      free(n)
    }
#endif
#ifndef NO_RENEWAL
  :: d_step { acq[me].renews && acq[me].phase == over && node[n].votes && OWNS(me, n) -> node[n].left = TTL }
  :: d_step {
      acq[me].renews && acq[me].phase == held && node[n].votes && OWNS(me, n) ->
      node[n].left = TTL;
      acq[me].renewed = acq[me].renewed | BIT(n)
    }
  :: d_step {
      acq[me].heals && acq[me].earns > TRUSTED - HEALS_FOR && node[n].votes && MAY_HEAL(me, n) ->
      printf("node %d is given it back for %d\n", n, me);
      SEEN(highest == acq[me].fence, HEALING);
      node[n].owner = me;
      node[n].left = TTL;
      node[n].fence = acq[me].fence;
      node[n].settled = true;
      node[n].round = acq[me].round;
      node[n].high = HIGHER(node[n].high, acq[me].fence)
    }
#endif
  od
}

#if RESTARTS > 0
/* Loses its memory, as long as the others have theirs; comes back when a majority of them has told it what it forgot. */
proctype Memory(byte n) {
  byte other;
  do
  :: d_step {
      restarts < RESTARTS && COUNT(VOTING) == NODES && MAY_BE_USED(n) ->
      use(n);
      restarts++;
      printf("node %d restarts empty\n", n);
      free(n);
      node[n].high = 0;
#ifndef NO_QUARANTINE
      node[n].votes = false;
      node[n].wait = QUARANTINE
#endif
    }
  :: ASKS((n + 1) % NODES)
  :: ASKS((n + 2) % NODES)
  :: d_step {
      !node[n].votes && node[n].wait == 0 && COUNT(node[n].asked) >= ENOUGH ->
      SEEN(node[n].floor > 0, READMISSION);
      printf("node %d votes again, above %d\n", n, node[n].floor);
      node[n].high = node[n].floor;
      node[n].votes = true;
      node[n].asked = 0;
      node[n].floor = 0
    }
  od
}
#endif

proctype Time() {
  byte me, n;
  do
  :: d_step {
      printf("time passes\n");
#ifdef COUNTS_OWNED
      /* Whoever trusts has a majority, but for the nodes that have lost their memory. */
      for (ALL(me)) {
        assert(!TRUSTS(me) || COUNT(OWNED_BY(me)) + NODES - COUNT(VOTING) >= MAJORITY)
      }
#endif
      for (EVERY(n)) {
        LESS(node[n].left);
        if :: node[n].left == 0 -> free(n) :: else fi;
        LESS(node[n].wait)
      }
      for (ALL(me)) {
        LESS(acq[me].due);
        LESS(acq[me].trust);
        LESS(acq[me].earns);
        if
        :: acq[me].phase == over && acq[me].due == 0 && acq[me].earns == 0 &&
           !OWNS(me, 0) && !OWNS(me, 1) && !OWNS(me, 2) ->
          /* Nothing that is left of it changes anything any more: one state, not many. */
          acq[me].round = 0;
          acq[me].fence = 0;
          acq[me].staleFence = 0;
          acq[me].renews = false;
      acq[me].heals = false
        :: else
        fi
      }
      me = 0; n = 0
    }
  od
}

init {
  byte me, n;
  atomic {
    for (ALL(me)) {
      run Client(me);
      for (EVERY(n)) { run Wire(me, n) }
    }
#if RESTARTS > 0
    for (EVERY(n)) { run Memory(n) }
#endif
    me = 0; n = 0;
    run Time()
  }
}
