//! The decimal digits of doubles by Grisu2 (Florian Loitsch, "Printing floating-point numbers
//! quickly and accurately with integers", 2010).
//!
//! The digits always read back as the same double. In about one of a thousand cases fewer digits
//! would do. It is used nevertheless because Redis uses it, so scores and coordinates print alike.
//!
//! ```text
//! value     = w.mantissa * 2^w.exponent, between the bounds half way to its two neighbours
//! 10^-k * w = an integer part of at most 32 bits, and a fraction: digits are generated one by one
//!             until the rest is less than the distance between the bounds
//! ```

/// The largest number of digits.
pub(crate) const DIGITS_MAX: usize = 18;

/// Powers of ten from 10^[`POWER_MIN`] on, each [`POWER_STEP`] more: 64 bits, the highest one set.
const POWERS: [u64; 87] = [
    0xfa8f_d5a0_081c_0288,
    0xbaae_e17f_a23e_bf76,
    0x8b16_fb20_3055_ac76,
    0xcf42_894a_5dce_35ea,
    0x9a6b_b0aa_5565_3b2d,
    0xe61a_cf03_3d1a_45df,
    0xab70_fe17_c79a_c6ca,
    0xff77_b1fc_bebc_dc4f,
    0xbe56_91ef_416b_d60c,
    0x8dd0_1fad_907f_fc3c,
    0xd351_5c28_3155_9a83,
    0x9d71_ac8f_ada6_c9b5,
    0xea9c_2277_23ee_8bcb,
    0xaecc_4991_4078_536d,
    0x823c_1279_5db6_ce57,
    0xc210_9436_4dfb_5637,
    0x9096_ea6f_3848_984f,
    0xd774_85cb_2582_3ac7,
    0xa086_cfcd_97bf_97f4,
    0xef34_0a98_172a_ace5,
    0xb238_67fb_2a35_b28e,
    0x84c8_d4df_d2c6_3f3b,
    0xc5dd_4427_1ad3_cdba,
    0x936b_9fce_bb25_c996,
    0xdbac_6c24_7d62_a584,
    0xa3ab_6658_0d5f_daf6,
    0xf3e2_f893_dec3_f126,
    0xb5b5_ada8_aaff_80b8,
    0x8762_5f05_6c7c_4a8b,
    0xc9bc_ff60_34c1_3053,
    0x964e_858c_91ba_2655,
    0xdff9_7724_7029_7ebd,
    0xa6df_bd9f_b8e5_b88f,
    0xf8a9_5fcf_8874_7d94,
    0xb944_7093_8fa8_9bcf,
    0x8a08_f0f8_bf0f_156b,
    0xcdb0_2555_6531_31b6,
    0x993f_e2c6_d07b_7fac,
    0xe45c_10c4_2a2b_3b06,
    0xaa24_2499_6973_92d3,
    0xfd87_b5f2_8300_ca0e,
    0xbce5_0864_9211_1aeb,
    0x8cbc_cc09_6f50_88cc,
    0xd1b7_1758_e219_652c,
    0x9c40_0000_0000_0000,
    0xe8d4_a510_0000_0000,
    0xad78_ebc5_ac62_0000,
    0x813f_3978_f894_0984,
    0xc097_ce7b_c907_15b3,
    0x8f7e_32ce_7bea_5c70,
    0xd5d2_38a4_abe9_8068,
    0x9f4f_2726_179a_2245,
    0xed63_a231_d4c4_fb27,
    0xb0de_6538_8cc8_ada8,
    0x83c7_088e_1aab_65db,
    0xc45d_1df9_4271_1d9a,
    0x924d_692c_a61b_e758,
    0xda01_ee64_1a70_8dea,
    0xa26d_a399_9aef_774a,
    0xf209_787b_b47d_6b85,
    0xb454_e4a1_79dd_1877,
    0x865b_8692_5b9b_c5c2,
    0xc835_53c5_c896_5d3d,
    0x952a_b45c_fa97_a0b3,
    0xde46_9fbd_99a0_5fe3,
    0xa59b_c234_db39_8c25,
    0xf6c6_9a72_a398_9f5c,
    0xb7dc_bf53_54e9_bece,
    0x88fc_f317_f222_41e2,
    0xcc20_ce9b_d35c_78a5,
    0x9816_5af3_7b21_53df,
    0xe2a0_b5dc_971f_303a,
    0xa8d9_d153_5ce3_b396,
    0xfb9b_7cd9_a4a7_443c,
    0xbb76_4c4c_a7a4_4410,
    0x8bab_8eef_b640_9c1a,
    0xd01f_ef10_a657_842c,
    0x9b10_a4e5_e991_3129,
    0xe710_9bfb_a19c_0c9d,
    0xac28_20d9_623b_f429,
    0x8044_4b5e_7aa7_cf85,
    0xbf21_e440_03ac_dd2d,
    0x8e67_9c2f_5e44_ff8f,
    0xd433_179d_9c8c_b841,
    0x9e19_db92_b4e3_1ba9,
    0xeb96_bf6e_badf_77d9,
    0xaf87_023b_9bf0_ee6b,
];
const POWER_MIN: i32 = -348;
const POWER_STEP: i32 = 8;
/// The binary exponent of a product with a power is in this range.
const EXPONENTS: std::ops::RangeInclusive<i32> = -60..=-32;

/// Powers of ten with 32 bits.
const UNITS: [u32; 10] =
    [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

const MANTISSA_BITS: u32 = 52;
const HIDDEN_BIT: u64 = 1 << MANTISSA_BITS;
/// The bias of the exponent if the mantissa is an integer.
const BIAS: i32 = 1075;

/// The significant digits of a double: `digits[..len]` scaled by ten to `exponent`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DoubleDigits {
    pub(crate) digits: [u8; DIGITS_MAX],
    pub(crate) len: usize,
    pub(crate) exponent: i32,
}

/// `mantissa` times two to `exponent`.
#[derive(Clone, Copy)]
struct Float {
    mantissa: u64,
    exponent: i32,
}

impl Float {
    /// Converts a finite magnitude above zero.
    fn of(magnitude: f64) -> Self {
        let bits = magnitude.to_bits();
        let (mantissa, exponent) = (bits & (HIDDEN_BIT - 1), (bits >> MANTISSA_BITS) as i32);
        match exponent {
            0 => Self { mantissa, exponent: 1 - BIAS },
            exponent => Self { mantissa: mantissa | HIDDEN_BIT, exponent: exponent - BIAS },
        }
    }

    /// The same value with the highest bit set.
    fn normalized(self) -> Self {
        let shift = self.mantissa.leading_zeros();
        Self { mantissa: self.mantissa << shift, exponent: self.exponent - shift as i32 }
    }

    /// The rounded product.
    fn times(self, other: Self) -> Self {
        let product = u128::from(self.mantissa) * u128::from(other.mantissa);
        let rounded = (product >> 64) as u64 + (product as u64 >> 63);
        Self { mantissa: rounded, exponent: self.exponent + other.exponent + 64 }
    }
}

/// A power of ten that brings a number with this exponent into [`EXPONENTS`], and its decimal
/// exponent.
fn power_for(exponent: i32) -> (Float, i32) {
    let guess = f64::from(-(exponent + POWERS.len() as i32)) * std::f64::consts::LOG10_2;
    let mut index = ((guess as i32 - POWER_MIN) / POWER_STEP) as usize;
    loop {
        let power = POWER_MIN + index as i32 * POWER_STEP;
        // The binary exponent of a power of ten, in fixed point.
        let float = Float { mantissa: POWERS[index], exponent: ((power * 217_706) >> 16) - 63 };
        let sum = exponent + float.exponent + 64;
        if sum < *EXPONENTS.start() {
            index += 1;
        } else if sum > *EXPONENTS.end() {
            index -= 1;
        } else {
            return (float, power);
        }
    }
}

impl DoubleDigits {
    /// The digits of a finite magnitude above zero.
    pub(crate) fn of(magnitude: f64) -> Self {
        let value = Float::of(magnitude);
        // Half way to the neighbours. The lower one is closer if the mantissa is the smallest.
        let above = Float { mantissa: (value.mantissa << 1) + 1, exponent: value.exponent - 1 };
        let shift = if value.mantissa == HIDDEN_BIT { 2 } else { 1 };
        let below =
            Float { mantissa: (value.mantissa << shift) - 1, exponent: value.exponent - shift };
        let upper = above.normalized();
        let lower = Float {
            mantissa: below.mantissa << (below.exponent - upper.exponent),
            exponent: upper.exponent,
        };
        let (power, by) = power_for(upper.exponent);
        let mut upper = upper.times(power);
        let lower = lower.times(power).mantissa + 1;
        upper.mantissa -= 1;
        let value = value.normalized().times(power).mantissa;
        let mut digits = Self { digits: [0; DIGITS_MAX], len: 0, exponent: -by };
        digits.generate(upper, upper.mantissa - lower, upper.mantissa - value);
        digits
    }

    /// Generates digits of `upper` until less than `room` is left, and then lowers the last digit
    /// towards the value, which is `distance` below `upper`.
    fn generate(&mut self, upper: Float, mut room: u64, mut distance: u64) {
        let shift = upper.exponent.unsigned_abs();
        let one = 1u64 << shift;
        // With every power, the integer part has at most 32 bits.
        let (mut whole, mut fraction) =
            ((upper.mantissa >> shift) as u32, upper.mantissa & (one - 1));
        for (power, unit) in UNITS.into_iter().enumerate().rev() {
            self.push((whole / unit) as u8);
            whole %= unit;
            let rest = (u64::from(whole) << shift) + fraction;
            if rest <= room {
                self.exponent += power as i32;
                return self.round(room, rest, u64::from(unit) << shift, distance);
            }
        }
        loop {
            fraction *= 10;
            room *= 10;
            // Wraps around if the bounds are far apart, as in Redis.
            distance = distance.wrapping_mul(10);
            self.exponent -= 1;
            self.push((fraction >> shift) as u8);
            fraction &= one - 1;
            if fraction < room {
                return self.round(room, fraction, one, distance);
            }
        }
    }

    /// Adds a digit, unless it is a leading zero.
    fn push(&mut self, digit: u8) {
        if (digit > 0 || self.len > 0)
            && let Some(slot) = self.digits.get_mut(self.len)
        {
            *slot = b'0' + digit;
            self.len += 1;
        }
    }

    /// Lowers the last digit while that gets closer to the value and stays within the bounds.
    fn round(&mut self, room: u64, mut rest: u64, unit: u64, distance: u64) {
        while rest < distance
            && room - rest >= unit
            && (rest + unit < distance || distance - rest > rest + unit - distance)
        {
            if let Some(last) = self.digits[..self.len].last_mut() {
                *last -= 1;
            }
            rest += unit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn text(magnitude: f64) -> String {
        let digits = DoubleDigits::of(magnitude);
        let shown = String::from_utf8_lossy(&digits.digits[..digits.len]).into_owned();
        format!("{shown}e{}", digits.exponent)
    }

    #[test]
    fn digits_equal_those_of_redis() {
        for (magnitude, expected) in [
            (0.1, "1e-1"),
            (1.5, "15e-1"),
            (5e-324, "5e-324"),
            (f64::MAX, "17976931348623157e292"),
            (f64::MIN_POSITIVE, "22250738585072014e-324"),
            (13.361_389_338_970_184, "13361389338970184e-15"),
            // Here one digit less would suffice.
            (439.854_170_264_648_9, "43985417026464887e-14"),
            (27.415_558_397_769_928, "27415558397769928e-15"),
            (20.867_817_147_755_65, "20867817147755652e-15"),
            (270.284_106_953_283_1, "27028410695328313e-14"),
        ] {
            assert_eq!(text(magnitude), expected);
        }
    }

    #[test]
    fn digits_read_back_and_are_few() {
        let mut random = Random::new(9);
        let mut longer = 0;
        for _ in 0..100_000 {
            let magnitude = f64::from_bits(random.next_u64() >> 1);
            if !magnitude.is_finite() || magnitude == 0.0 {
                continue;
            }
            let digits = text(magnitude);
            assert_eq!(digits.parse(), Ok(magnitude), "{digits}");
            let fewest = format!("{magnitude:e}");
            let fewest = fewest.bytes().take_while(|b| *b != b'e').filter(u8::is_ascii_digit);
            let fewest = fewest.count();
            longer += usize::from(digits.find('e') > Some(fewest));
        }
        assert!(longer < 500, "{longer} of 100000 are longer than they must be");
    }
}
