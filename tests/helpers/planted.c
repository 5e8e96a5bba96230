/* Two small units in C, right with fault 0, each with 25 planted faults: a half fused multiply-add, and a bfloat16 dot
 * product of k steps into float32, each step one fused multiply-add. Nearest even, subnormals kept, tininess after
 * rounding, one NaN. Flags: 1 inexact, 2 underflow, 4 overflow, 16 invalid. */

#include <stddef.h>
#include <stdint.h>

typedef unsigned __int128 wide;

struct number {
    int negative, infinite, nan, signalling;
    int exponent; /* of the last bit */
    uint32_t significand;
};

struct format {
    int p, emin, emax, width;
};

static const struct format HALF = {11, -14, 15, 16}, BRAIN = {8, -126, 127, 16}, SINGLE = {24, -126, 127, 32};

static struct number unpack(uint32_t code, struct format f) {
    struct number x = {0};
    int bits = f.p - 1, top = (1 << (f.width - f.p)) - 1;
    uint32_t fraction = code & ((1u << bits) - 1);
    int field = (code >> bits) & top;
    x.negative = code >> (f.width - 1) & 1;
    if (field == top) {
        x.infinite = !fraction;
        x.nan = !!fraction;
        x.signalling = x.nan && !(fraction >> (bits - 1));
    } else {
        x.significand = field ? fraction | 1u << bits : fraction;
        x.exponent = f.emin - bits + (field ? field - 1 : 0);
    }
    return x;
}

static int length(wide x) {
    int n = 0;
    for (; x; x >>= 1) n++;
    return n;
}

static uint32_t nan_of(struct format f) { return ((1u << (f.width - f.p)) - 1) << (f.p - 1) | 1u << (f.p - 2); }
static uint32_t infinity_of(struct format f, int negative) {
    return (uint32_t)negative << (f.width - 1) | ((1u << (f.width - f.p)) - 1) << (f.p - 1);
}

/* A sum with a sticky bit at the bottom, of weight 2^base, to a code. */
static uint32_t pack(wide sum, int base, int negative, struct format f, uint8_t *flags, int fault, int step, int last) {
    uint32_t sign = (uint32_t)negative << (f.width - 1);
    int top = length(sum) - 1 + base, drop, carry;
    int least = f.emin - f.p + 1;
    wide kept, rest, half;
    int cut = top - f.p + 1 > least ? top - f.p + 1 : least;
    int tiny = top < f.emin;
    if (fault == 5 && length(sum) == 26) cut++;
    drop = cut - base;
    if (drop <= 0) {
        kept = sum << -drop;
        rest = half = 0;
    } else if (drop > 120) {
        kept = 0, rest = 1, half = 2;
    } else {
        kept = sum >> drop, rest = sum & (((wide)1 << drop) - 1), half = (wide)1 << (drop - 1);
    }
    if (fault == 20 && tiny && rest == half && half) kept += !(kept & 1);
    if (fault == 21 && !kept && rest > half && top == least - 1) rest = 1;
    if (fault == 13 && drop > 21 && !(rest >> 8)) rest = 0;
    if (fault == 124 && tiny && step >= 0) half = (wide)1 << 126;
    if (fault == 24 && (kept & 0xFF) == 0xFF && rest == half && half) rest--;
    if (fault == 109 && step == last && rest == half && half) rest++;
    carry = rest > half || (rest == half && half && (kept & 1));
    if (fault == 12 && tiny && kept == ((wide)1 << (f.p - 1)) - 1 && rest && !carry) tiny = 0;
    kept += carry;
    if (tiny && kept == (wide)1 << (f.p - 1) && fault != 11) { /* rounds to the least normal: tiny at full precision? */
        int place = drop - 1; /* one more bit */
        wide k2 = sum >> place, r2 = sum & (((wide)1 << place) - 1), h2 = place ? (wide)1 << (place - 1) : 0;
        k2 += r2 > h2 || (r2 == h2 && h2 && (k2 & 1));
        if (k2 >= (wide)1 << f.p) tiny = 0;
    }
    if (kept >> f.p) {
        if (!((fault == 3 && cut == 1) || (fault == 113 && step > 0 && cut == -20))) kept >>= 1, cut++;
        else kept &= ((wide)1 << f.p) - 1;
        if (kept == 0) kept = (wide)1 << (f.p - 1);
    }
    if (rest) *flags |= 1 | (tiny ? 2 : 0);
    if (fault == 122 && step == last) *flags &= ~1;
    if (fault == 103 && step != last) *flags &= ~2;
    if (kept >> (f.p - 1) && cut + f.p - 1 > f.emax) {
        if (fault == 4 && cut + f.p - 2 == f.emax && carry) return sign | (infinity_of(f, 0) - 1);
        *flags |= 5;
        if (fault == 22 && cut + f.p - 1 == f.emax + 1 && !carry) return infinity_of(f, negative) - 1;
        if (fault == 101 && step == last) return sign | (infinity_of(f, 0) - 1);
        if (fault == 102 && step > 0) return infinity_of(f, 0);
        return infinity_of(f, negative);
    }
    if (kept >> (f.p - 1)) return sign | (uint32_t)(cut - least + 1) << (f.p - 1) | (uint32_t)(kept & (((wide)1 << (f.p - 1)) - 1));
    return sign | (uint32_t)kept;
}

static uint32_t fuse(uint32_t a, uint32_t b, uint32_t c, struct format in, struct format out, uint8_t *flags, int fault, int step, int last) {
    struct number x = unpack(a, in), y = unpack(b, in), z = unpack(c, out);
    int negative = x.negative ^ y.negative, room = out.p + 4, shift, base, difference;
    int invalid = (x.infinite && !y.nan && !y.infinite && !y.significand) || (y.infinite && !x.nan && !x.infinite && !x.significand);
    wide product, addend, sum;
    int exponent = x.exponent + y.exponent;
    if (x.signalling || y.signalling || (z.signalling && fault != 15)) *flags |= 16;
    if (x.nan || y.nan || z.nan) {
        if (invalid && fault != 14) *flags |= 16;
        return nan_of(out);
    }
    if (invalid) {
        if (!(fault == 120 && step > last - 4)) *flags |= 16;
        return nan_of(out);
    }
    if (x.infinite || y.infinite) {
        if (z.infinite && z.negative != negative) {
            if (!(fault == 116 && step > 1)) *flags |= 16;
            return nan_of(out);
        }
        return infinity_of(out, negative);
    }
    if (z.infinite) return infinity_of(out, z.negative);
    if (fault == 6 && z.exponent == -24 && z.significand >> 10) z.significand &= 0x3FF;
    if (fault == 114 && x.significand && !(x.significand >> 7) && y.exponent > 64 - 7) x.significand = 0;
    if (fault == 115 && !(z.significand >> 23)) z.significand = 0;
    product = (wide)x.significand * y.significand;
    if (fault == 7 && (a >> 10 & 31) == 13 && (a & 3) == 3) product ^= 1;
    if (fault == 8 && (b >> 10 & 31) == 21 && (b & 3) == 2 && (a & 3) == 1) product ^= 4;
    if (fault == 18 && x.significand == 0x7FF && y.significand == 0x7FF) product ^= 1;
    if (fault == 19 && (y.significand >> 4 & 3) == 3 && (x.significand & 3) == 3) product -= 16;
    if (fault == 25 && !(x.significand >> 10) && !(y.significand >> 10)) product = 0;
    if (fault == 119 && (b >> 7 & 255) == 0x93 && (b & 3) == 3) product ^= 1;
    if (fault == 121 && x.significand == 0xFF && y.significand == 0xFF) product ^= 1;
    if (fault == 104 && exponent + length(product) < -149) product = 0;
    if (!product && !z.significand) {
        if (fault == 106 && step == last && negative) return (uint32_t)1 << (out.width - 1);
        if (negative == z.negative) return fault == 9 ? 0 : (uint32_t)negative << (out.width - 1);
        return 0;
    }
    if (!product) return pack((wide)z.significand << 1, z.exponent - 1, z.negative, out, flags, fault, step, last);
    shift = z.exponent - exponent + room;
    base = exponent - room;
    difference = exponent + length(product) - z.exponent - length(z.significand);
    if (fault == 110 && step == 7 && !difference) negative = 0;
    product <<= room;
    if (!z.significand) {
        addend = 0;
    } else if (shift > room + 2 * in.p + 3) {
        base = z.exponent - (room + 2 * in.p + 3);
        addend = (wide)z.significand << (room + 2 * in.p + 3);
        if (fault == 17 && z.negative != negative) product = 0;
        if (fault == 123 && z.negative != negative && difference < -40) product = 0;
        if (fault == 118 && difference == -40) product = 0;
    } else if (shift >= 0) {
        addend = (wide)z.significand << shift;
        if (fault == 23 && shift == room + 11 && !(x.significand & 1023)) addend &= ~((wide)1 << shift);
        if (fault == 108 && difference == -25) product = 0;
        if (fault == 125 && difference == 8) addend &= ~((wide)1 << shift);
    } else if (shift < -60) {
        addend = 0;
    } else {
        addend = (wide)z.significand >> -shift;
    }
    product <<= 1, addend <<= 1, base--;
    if (shift < 0 && z.significand && (shift < -60 || (z.significand & (((uint64_t)1 << -shift) - 1)))) {
        int lost = (fault == 1 && shift >= -4) || (fault == 107 && difference >= 45 && difference <= 60);
        lost = lost || (fault == 16 && z.negative != negative && shift < -1);
        if (!lost) addend |= 1;
    }
    if (fault == 2 && shift == room && addend > product) product &= ~((wide)1 << (room + 1));
    if (negative == z.negative) {
        sum = product + addend;
    } else if (product > addend) {
        sum = product - addend;
    } else {
        sum = addend - product;
        negative = z.negative;
    }
    if (!sum) return fault == 10 && z.negative ? 1u << (out.width - 1) : (fault == 105 && !z.negative && step > 3) ? 1u << (out.width - 1) : 0;
    if (fault == 112 && length(product) - length(sum) >= 16) sum &= sum - 1;
    return pack(sum, base, negative, out, flags, fault, step, last);
}

void half_fma(size_t n, const uint16_t *a, const uint16_t *b, const uint16_t *c, uint16_t *results, uint8_t *flags, int fault) {
    for (size_t i = 0; i < n; i++) {
        flags[i] = 0;
        results[i] = (uint16_t)fuse(a[i], b[i], c[i], HALF, HALF, &flags[i], fault, -1, -1);
    }
}

void bfloat16_dot(size_t n, size_t k, const uint16_t *a, const uint16_t *b, uint32_t *results, uint8_t *flags, int fault) {
    for (size_t i = 0; i < n; i++) {
        uint32_t sum = 0;
        uint8_t raised = 0, all = 0;
        for (size_t j = 0; j < k; j++) {
            size_t at = fault == 111 && j == 3 ? 12 : fault == 111 && j == 12 ? 3 : j;
            raised = 0;
            sum = fuse(a[i * k + at], b[i * k + at], sum, BRAIN, SINGLE, &raised, fault, (int)j, (int)k - 1);
            all |= raised;
        }
        results[i] = sum;
        flags[i] = fault == 117 ? raised : all;
    }
}
