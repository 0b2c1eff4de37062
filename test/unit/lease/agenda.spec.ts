import { describe, expect, it, jest } from '@jest/globals';
import { Agenda, type Appointment } from '../../../lib/lease/agenda.js';
import { VirtualClock } from '../../support/virtual-clock.js';

/** Collects what would be printed as a warning. */
function warnings(): unknown[] {
  const seen: unknown[] = [];
  jest.spyOn(process, 'emitWarning').mockImplementation((warning) => void seen.push(warning));
  return seen;
}

describe('the agenda', () => {
  it('keeps appointments in the order of their time, behind one timer', async () => {
    const clock = new VirtualClock();
    const agenda = new Agenda(clock);
    const kept: number[] = [];
    // Every order of insertion comes by: 37 has no common divisor with 100.
    for (let i = 0; i < 100; i++) {
      const ms = (i * 37) % 100;
      agenda.after(ms, () => kept.push(ms));
    }
    expect(clock.timers).toBe(1);
    await clock.advance(100);
    expect(kept).toEqual(Array.from({ length: 100 }, (_, i) => i));
    expect(agenda.size).toBe(0);
    expect(clock.timers).toBe(0);
  });

  it('keeps none that was cancelled, whichever it was', async () => {
    for (let cancelled = 0; cancelled < 20; cancelled++) {
      const clock = new VirtualClock();
      const agenda = new Agenda(clock);
      const kept: number[] = [];
      const appointments = Array.from({ length: 20 }, (_, i) => {
        const ms = (i * 7) % 20;
        return { ms, appointment: agenda.after(ms, () => kept.push(ms)) };
      });
      const one = appointments[cancelled]!;
      agenda.cancel(one.appointment);
      agenda.cancel(one.appointment);
      await clock.advance(20);
      expect(kept).toEqual(Array.from({ length: 20 }, (_, i) => i).filter((ms) => ms !== one.ms));
    }
  });

  it('moves an appointment that is put elsewhere, earlier or later', async () => {
    const clock = new VirtualClock();
    const agenda = new Agenda(clock);
    const kept: string[] = [];
    const a = agenda.after(10, () => kept.push('a'));
    agenda.after(20, () => kept.push('b'));
    const c = agenda.after(30, () => kept.push('c'));
    agenda.schedule(a, clock.now() + 25);
    agenda.schedule(c, clock.now() + 5);
    expect(agenda.size).toBe(3);
    await clock.advance(30);
    expect(kept).toEqual(['c', 'b', 'a']);
  });

  it('keeps nothing before its time, though its timer was for one that is gone', async () => {
    const clock = new VirtualClock();
    const agenda = new Agenda(clock);
    let keptAt: number | undefined;
    const early = agenda.after(5, () => {});
    const due = clock.now() + 50;
    agenda.after(50, () => (keptAt = clock.now()));
    agenda.cancel(early);
    await clock.advance(100);
    expect(keptAt).toBe(due);
  });

  it.each([
    ['an error', new Error('thrown')],
    ['a string', 'thrown'],
    ['nothing', undefined],
    ['an object that is no string', Object.create(null) as object],
    ['a symbol', Symbol('thrown')],
  ])(
    'survives an appointment that throws %s, and keeps the others (rule 12)',
    async (_, thrown) => {
      const seen = warnings();
      const clock = new VirtualClock();
      const agenda = new Agenda(clock);
      const kept: string[] = [];
      agenda.after(10, () => {
        throw thrown;
      });
      agenda.after(10, () => kept.push('same time'));
      agenda.after(20, () => kept.push('later'));
      await clock.advance(20);
      agenda.after(10, () => kept.push('made afterwards'));
      await clock.advance(10);
      expect(kept).toEqual(['same time', 'later', 'made afterwards']);
      expect(seen).toHaveLength(1);
      jest.restoreAllMocks();
    },
  );

  it('ends a round, though an appointment puts itself back at once', async () => {
    const clock = new VirtualClock();
    const agenda = new Agenda(clock);
    let kept = 0;
    const again: Appointment = {
      due: 0,
      slot: -1,
      keep: () => {
        if (++kept < 1_000) agenda.schedule(again, clock.now());
      },
    };
    agenda.schedule(again, clock.now());
    await clock.advance(0);
    expect(kept).toBe(1_000);
  });

  it('keeps what one appointment adds and removes while it is kept', async () => {
    const clock = new VirtualClock();
    const agenda = new Agenda(clock);
    const kept: string[] = [];
    agenda.after(10, () => {
      kept.push('first');
      agenda.cancel(second);
      agenda.after(0, () => kept.push('added'));
    });
    const second = agenda.after(11, () => kept.push('second'));
    clock.freeze(20);
    await clock.advance(0);
    expect(kept).toEqual(['first', 'added']);
  });

  it('keeps appointments that are further away than a timer can be', async () => {
    const clock = new VirtualClock();
    const agenda = new Agenda(clock);
    const year = 365 * 86_400_000;
    let keptAt: number | undefined;
    const due = clock.now() + year;
    agenda.after(year, () => (keptAt = clock.now()));
    await clock.advance(year - 1);
    expect(keptAt).toBeUndefined();
    await clock.advance(1);
    expect(keptAt).toBe(due);
  });

  it('needs no timer for an appointment that never comes', () => {
    const clock = new VirtualClock();
    const agenda = new Agenda(clock);
    agenda.after(Infinity, () => {});
    expect(clock.timers).toBe(0);
  });

  describe('of an appointment with leeway', () => {
    /** Appointments at these times from now, and which of them were kept when. */
    const diary = (leeway: number) => {
      const clock = new VirtualClock();
      const agenda = new Agenda(clock);
      const start = clock.now();
      const kept: [string, number][] = [];
      const put = (name: string, ms: number): Appointment => {
        const keep = () => void kept.push([name, clock.now() - start]);
        const appointment: Appointment = { due: 0, slot: -1, leeway, keep };
        agenda.schedule(appointment, start + ms);
        return appointment;
      };
      return { clock, agenda, kept, put };
    };

    it('keeps it a little early, together with another that is due', async () => {
      const { clock, agenda, kept, put } = diary(50);
      put('first', 100);
      put('along', 150);
      put('not yet', 151);
      await clock.advance(1_000);
      expect(kept).toEqual([
        ['first', 100],
        ['along', 100],
        ['not yet', 151],
      ]);
      expect(agenda.size).toBe(0);
    });

    it('keeps it at its time when nothing else is due', async () => {
      const { clock, agenda, kept, put } = diary(50);
      const cancelled = put('cancelled', 100);
      put('alone', 120);
      agenda.cancel(cancelled);
      await clock.advance(1_000);
      expect(kept).toEqual([['alone', 120]]);
    });

    it('finds all that may come along, wherever in the heap they are', async () => {
      const { clock, agenda, kept, put } = diary(50);
      // Every order of insertion comes by: 37 has no common divisor with 100.
      for (let i = 0; i < 100; i++) put(`${i}`, 100 + ((i * 37) % 100));
      await clock.advance(100);
      expect(kept).toHaveLength(51);
      await clock.advance(1_000);
      expect(kept).toHaveLength(100);
      expect(agenda.size).toBe(0);
    });

    it('takes along none that another one cancelled or put off', async () => {
      const { clock, agenda, kept, put } = diary(50);
      agenda.after(100, () => {});
      const alongFirst: Appointment = {
        due: 0,
        slot: -1,
        leeway: 50,
        keep: () => {
          agenda.cancel(cancelled);
          agenda.schedule(later, clock.now() + 500);
        },
      };
      agenda.schedule(alongFirst, clock.now() + 110);
      const cancelled = put('cancelled', 120);
      const later = put('later', 130);
      await clock.advance(1_000);
      expect(kept).toEqual([['later', 600]]);
    });
  });

  it('keeps at once what is left when it is stopped, and has no timer: nobody waits for ever', async () => {
    const clock = new VirtualClock();
    const agenda = new Agenda(clock);
    const kept: string[] = [];
    const appointment = agenda.after(10, () => kept.push('left'));
    agenda.after(Infinity, () => kept.push('never due'));
    agenda.stop();
    expect(kept).toEqual(['left', 'never due']);
    expect([agenda.size, clock.timers]).toEqual([0, 0]);
    agenda.cancel(appointment);
    await clock.advance(20);
    expect(kept).toHaveLength(2);
  });

  it('is stopped though what is left throws (rule 12)', () => {
    const seen = warnings();
    const agenda = new Agenda(new VirtualClock());
    const kept: string[] = [];
    agenda.after(10, () => {
      throw new Error('thrown');
    });
    agenda.after(20, () => kept.push('after it'));
    agenda.stop();
    expect(kept).toEqual(['after it']);
    expect(seen).toHaveLength(1);
    jest.restoreAllMocks();
  });

  it('still bounds what is begun after it was stopped', async () => {
    const clock = new VirtualClock();
    const agenda = new Agenda(clock);
    const kept: string[] = [];
    agenda.stop();
    agenda.after(5, () => kept.push('afterwards'));
    await clock.advance(5);
    expect(kept).toEqual(['afterwards']);
  });

  it('may be stopped by an appointment', async () => {
    const clock = new VirtualClock();
    const agenda = new Agenda(clock);
    const kept: string[] = [];
    agenda.after(10, () => agenda.stop());
    agenda.after(10, () => kept.push('once'));
    await clock.advance(20);
    expect(kept).toEqual(['once']);
    expect(clock.timers).toBe(0);
  });
});
