//! Trigonometry in degrees: exact where the angle says so (sind(30) is 0.5), by PostgreSQL's scheme of scaling each quadrant's functions
//! to their values at 30, 45 and 60 degrees (`float.c`, "DEGREE-BASED TRIGONOMETRIC FUNCTIONS").

use std::hint::black_box;

/// One degree in radians.
pub(super) const RADIANS_PER_DEGREE: f64 = 0.017_453_292_519_943_295;

/// What the quadrants are scaled by, computed at run time, so that it is the C library's as the rest is.
struct Scales {
    sin_30: f64,
    one_minus_cos_60: f64,
    asin_half: f64,
    acos_half: f64,
    atan_one: f64,
}

fn scales() -> Scales {
    Scales {
        sin_30: (black_box(30.0) * RADIANS_PER_DEGREE).sin(),
        one_minus_cos_60: 1.0 - (black_box(60.0) * RADIANS_PER_DEGREE).cos(),
        asin_half: black_box(0.5_f64).asin(),
        acos_half: black_box(0.5_f64).acos(),
        atan_one: black_box(1.0_f64).atan(),
    }
}

fn sine_to_30(angle: f64) -> f64 {
    ((angle * RADIANS_PER_DEGREE).sin() / scales().sin_30) / 2.0
}

fn cosine_to_60(angle: f64) -> f64 {
    let one_minus_cosine = 1.0 - (angle * RADIANS_PER_DEGREE).cos();
    1.0 - (one_minus_cosine / scales().one_minus_cos_60) / 2.0
}

fn sine_to_90(angle: f64) -> f64 {
    if angle <= 30.0 {
        sine_to_30(angle)
    } else {
        cosine_to_60(90.0 - angle)
    }
}

fn cosine_to_90(angle: f64) -> f64 {
    if angle <= 60.0 {
        cosine_to_60(angle)
    } else {
        sine_to_30(90.0 - angle)
    }
}

fn arc_sine_of_positive(x: f64) -> f64 {
    if x <= 0.5 {
        (x.asin() / scales().asin_half) * 30.0
    } else {
        90.0 - (x.acos() / scales().acos_half) * 60.0
    }
}

fn arc_cosine_of_positive(x: f64) -> f64 {
    if x <= 0.5 {
        90.0 - (x.asin() / scales().asin_half) * 30.0
    } else {
        (x.acos() / scales().acos_half) * 60.0
    }
}

/// The angle in the first quadrant, and which of the three reflections brought it there.
struct Reduced {
    angle: f64,
    below_zero: bool,
    beyond_180: bool,
    beyond_90: bool,
}

fn reduce(angle: f64) -> Reduced {
    let mut angle = angle % 360.0;
    let below_zero = angle < 0.0;
    if below_zero {
        angle = -angle;
    }
    let beyond_180 = angle > 180.0;
    if beyond_180 {
        angle = 360.0 - angle;
    }
    let beyond_90 = angle > 90.0;
    if beyond_90 {
        angle = 180.0 - angle;
    }
    Reduced {
        angle,
        below_zero,
        beyond_180,
        beyond_90,
    }
}

fn signed(negative: bool, float: f64) -> f64 {
    if negative { -float } else { float }
}

/// Zero without a sign.
fn positive_zero(float: f64) -> f64 {
    if float == 0.0 { 0.0 } else { float }
}

pub(super) fn sine(angle: f64) -> f64 {
    let reduced = reduce(angle);
    signed(reduced.below_zero != reduced.beyond_180, sine_to_90(reduced.angle))
}

pub(super) fn cosine(angle: f64) -> f64 {
    let reduced = reduce(angle);
    signed(reduced.beyond_90, cosine_to_90(reduced.angle))
}

pub(super) fn tangent(angle: f64) -> f64 {
    let reduced = reduce(angle);
    let tangent = sine_to_90(reduced.angle) / cosine_to_90(reduced.angle);
    let of_45 = sine_to_90(45.0) / cosine_to_90(45.0);
    let negative = reduced.below_zero ^ reduced.beyond_180 ^ reduced.beyond_90;
    positive_zero(signed(negative, tangent / of_45))
}

pub(super) fn cotangent(angle: f64) -> f64 {
    let reduced = reduce(angle);
    let cotangent = cosine_to_90(reduced.angle) / sine_to_90(reduced.angle);
    let of_45 = cosine_to_90(45.0) / sine_to_90(45.0);
    let negative = reduced.below_zero ^ reduced.beyond_180 ^ reduced.beyond_90;
    positive_zero(signed(negative, cotangent / of_45))
}

pub(super) fn arc_sine(x: f64) -> f64 {
    if x >= 0.0 {
        arc_sine_of_positive(x)
    } else {
        -arc_sine_of_positive(-x)
    }
}

pub(super) fn arc_cosine(x: f64) -> f64 {
    if x >= 0.0 {
        arc_cosine_of_positive(x)
    } else {
        90.0 + arc_sine_of_positive(-x)
    }
}

pub(super) fn arc_tangent(x: f64) -> f64 {
    (x.atan() / scales().atan_one) * 45.0
}

pub(super) fn arc_tangent_of_two(y: f64, x: f64) -> f64 {
    (y.atan2(x) / scales().atan_one) * 45.0
}
