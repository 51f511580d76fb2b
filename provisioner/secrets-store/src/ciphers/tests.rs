use proptest::prelude::*;

use super::rsa_oaep::pieces;
use super::*;
use crate::keys::{KeyPair, PublicKey};

fn ed25519() -> (PrivateKey, Recipient) {
    let key = PrivateKey::Ed25519(Zeroizing::new([7; 32]));
    let recipient = key.recipient().unwrap();
    (key, recipient)
}

#[test]
fn pieces_are_cut_at_characters_and_fit_into_oaep() {
    let lengths = |text: &[u8], modulus| {
        pieces(text, modulus).map(|pieces| pieces.iter().map(|piece| piece.len()).collect::<Vec<_>>())
    };
    for (text, modulus, expected) in [
        ("", 256, Some(vec![0])),
        (&*"x".repeat(128), 256, Some(vec![128])),
        (&"x".repeat(129), 256, Some(vec![128, 1])),
        (&"x".repeat(257), 256, Some(vec![128, 128, 1])),
        (&"é".repeat(64), 256, Some(vec![128])),
        (&"é".repeat(100), 256, Some(vec![190, 10])),
        (&"☃".repeat(70), 256, Some(vec![189, 21])),
        (&"x".repeat(62), 128, Some(vec![62])),
        (&"x".repeat(64), 128, Some(vec![62, 2])),
        ("x", 66, None),
    ] {
        assert_eq!(lengths(text.as_bytes(), modulus), expected, "{} bytes for {modulus}", text.len());
    }
    assert_eq!(lengths(&[0xff; 200], 256), Some(vec![128, 72]));
}

proptest! {
    #[test]
    fn pieces_of_any_text_join_to_it(text in proptest::collection::vec(any::<u8>(), 0..700), modulus in 70_usize..520) {
        let pieces = pieces(&text, modulus).unwrap();
        prop_assert!(pieces.iter().all(|piece| piece.len() <= modulus - 66));
        prop_assert_eq!(pieces.concat(), text);
    }

    #[test]
    fn sealed_text_is_opened_and_a_changed_bit_is_found(text: Vec<u8>, bit: usize) {
        let (key, recipient) = ed25519();
        let elements = encrypt(&text, &recipient).unwrap();
        prop_assert_eq!(&*decrypt(&elements, &key).unwrap(), &text);
        prop_assert!(!is_legacy(&elements));
        let mut blob = STANDARD.decode(&elements[0]).unwrap();
        let bit = bit % (blob.len() * 8);
        blob[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(decrypt(&[STANDARD.encode(blob)], &key).is_err());
    }
}

#[test]
fn elements_of_another_form_are_refused() {
    let (key, recipient) = ed25519();
    let element = encrypt(b"text", &recipient).unwrap().remove(0);
    let error = |elements: &[&str]| {
        decrypt(&elements.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(), &key).unwrap_err()
    };
    assert_eq!(error(&[]), CipherError::Elements(0));
    assert_eq!(error(&[&element, &element]), CipherError::Elements(2));
    assert_eq!(error(&["?"]), CipherError::NotBase64(1));
    assert_eq!(error(&[""]), CipherError::Element(1));
    let mut blob = STANDARD.decode(&element).unwrap();
    blob[8] = 2;
    assert_eq!(error(&[&STANDARD.encode(&blob)]), CipherError::Version(2));
    for length in [8, 9, 40, 41, 52, 60] {
        assert!(matches!(
            error(&[&STANDARD.encode(&STANDARD.decode(&element).unwrap()[..length])]),
            CipherError::Element(1)
        ));
    }
}

#[test]
fn rsa_elements_are_bound_to_their_key() {
    let [first, second] = [(); 2].map(|()| KeyPair::generate().unwrap());
    let recipient = PublicKey::of_line(&first.public).recipient().unwrap();
    let mut elements = encrypt("é".repeat(150).as_bytes(), &recipient).unwrap();
    let [own, other] = [&first, &second].map(|pair| PrivateKey::parse(&pair.private, None, "key").unwrap());
    assert_eq!(*decrypt(&elements, &own).unwrap(), "é".repeat(150).as_bytes());
    assert_eq!(decrypt(&elements, &other).unwrap_err(), CipherError::Element(1));
    let mut piece = STANDARD.decode(&elements[1]).unwrap();
    piece[100] ^= 1;
    elements[1] = STANDARD.encode(piece);
    assert_eq!(decrypt(&elements, &own).unwrap_err(), CipherError::Element(2));
}
