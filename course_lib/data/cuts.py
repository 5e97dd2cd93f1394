"""How drawn garments are cut: for each class of Fashion-MNIST several cuts, as `garments.Garment` reads them.

A cut is its points, in a box of 120 by 120 units; then after a bar each the lines around the fabric, those
around the trim, the straps, and the seams. A capital letter is the mirror image of its point.
"""

from __future__ import annotations

MIDDLE = 60, 60

_T_SHIRTS = (
    "44,10 60,19 28,16 6,44 19,55 32,42 31,112 41,11 60,26|abA AC CD DE EF FG Gg gf fe ed dc ca|||cf CF hiH",
    "43,10 60,38 28,16 7,50 21,58 32,42 33,112 39,12 60,45"
    "|ab bA AC CD DE EF FG Gg gf fe ed dc ca|||cf CF hi iH",
    "42,10 60,22 27,15 2,40 14,54 30,42 29,108 46,46 46,76"
    "|abA AC CD DE EF FG Gg gf fe ed dc ca|hH HI Ii ih||cf CF",
    "42,8 60,42 34,8 36,28 31,42 32,112|abA AC CDE EF Ff fedc ca|||",
)
_TROUSERS = (
    "38,6 34,30 33,114 54,114 60,46 60,8 60,30 37,14|aA AB BC CD De ed dc cb ba|||fg hH",
    "40,6 37,34 42,114 57,114 60,40 60,6 60,28 39,13|aA AB BC CD De ed dc cb ba|||fg hH",
    "40,6 36,34 25,114 51,114 60,48 38,14 42,34 38,100|aA AB BC CD De ed dc cb ba|||fF gh GH",
)
_PULLOVERS = (
    "46,9 60,16 32,14 15,60 6,106 20,110 33,50 32,112 31,102 7,98 22,101 43,12 60,22"
    "|abA AC CDE EF FG GH Hh hg gf fedc ca|||iI jk JK lmL cg CG",
    "47,4 46,12 32,15 16,58 8,106 22,109 33,52 33,110 32,101 9,98 24,101"
    "|aA AB BC CDE EF FG GH Hh hg gf fedc cb ba|||bB iI jk JK",
    "45,10 60,20 30,14 14,60 5,104 20,108 32,52 31,112 32,48 32,66"
    "|abA AC CDE EF FG GH Hh hg gf fedc ca|iI IJ Jj ji||cg CG",
    "47,8 60,15 34,13 18,58 12,104 26,106 34,54 33,112 44,80 38,102"
    "|abA AC CDE EF FG GH Hh hg gf fedc ca|||iI ij IJ jJ cg CG",
)
_DRESSES = (
    "45,6 60,24 38,6 42,34 45,52 24,116|abA AC CD DE EF Ff fe ed dc ca|||eE",
    "49,6 60,15 40,9 28,32 38,38 43,32 45,52 32,116|abA AC CD DE EF FG GH Hh hg gf fe ed dc ca|||gG",
    "50,6 60,16 41,9 31,46 28,76 37,77 43,38 42,60 36,116|abA AC CDE EF FG GHI Ii ihg gf fedc ca|||",
    "38,4 45,4 51,24 60,28 41,34 46,54 30,116|ab bcdCB BA AE EF FG Gg gf fe ea|||fF",
)
_COATS = (
    "47,6 60,40 30,13 13,60 7,106 23,110 31,54 28,116 60,116 38,30 48,74 34,82"
    "|aA AC CDE EF FG GH Hh hg gf fedc ca|ab bA Aa||bi aj jb AJ Jb kl KL cg CG",
    "48,4 46,13 31,14 14,58 8,104 24,107 32,54 30,112 60,4 60,112"
    "|aA AB BC CDE EF FG GH Hh hg gf fedc cb ba|||ij bB cg CG",
    "44,14 40,6 60,1 30,17 13,60 6,106 22,110 32,54 29,116 60,24 60,116 40,78 40,92"
    "|abcBA AD DEF FG GH HI Ii ih hg gfed da|||jk aj jA lm LM dh DH",
    "46,7 60,32 30,13 12,60 6,106 22,110 32,54 26,116 60,116 31,70"
    "|aA AC CDE EF FG GH Hh hg gf fedc ca|jJ||ab bA bi cg CG",
)
_SHIRTS = (
    "48,5 40,12 31,14 14,60 7,106 21,110 33,50 32,113 60,23 60,113 36,46 50,46 46,30 8,98 23,101"
    "|aA AB BC CDE EF FG GH Hh hg gf fedc cb ba|ai im mb ba Ai iM MB BA||ij kl no NO",
    "48,5 40,12 28,16 5,46 19,58 32,42 32,113 60,23 60,113 37,46 51,46 46,30"
    "|aA AB BC CD DE EF FG Gg gf fe ed dc cb ba|ah hl lb ba Ah hL LB BA||hi jk",
    "47,6 38,13 31,14 16,60 10,102 24,106 33,50 30,112 60,40 60,112 46,34"
    "|ai iA AB BC CDE EF FG GH Hh hg gf fedc cb ba|ai ik kb ba Ai iK KB BA||ij",
    "48,6 40,12 29,16 6,46 20,57 32,42 32,112 60,22 60,52 46,30"
    "|aA AB BC CD DE EF FG Gg gf fe ed dc cb ba|ah hj jb ba Ah hJ JB BA||hi",
    "45,9 60,17 31,14 14,60 7,106 21,110 33,50 31,112 60,50|abA AC CDE EF FG GH Hh hg gf fedc ca|||bi",
)
_SANDALS = (
    "6,92 30,85 70,82 108,76 113,90 60,97 18,98 24,84 36,64 52,84 62,82 84,52 104,46 106,78"
    "|abcde efg ga||hij kl lm mn|",
    "6,102 16,94 40,92 74,66 108,48 113,56 110,108 104,108 102,64 78,84 46,104 20,90 34,74 50,88"
    " 92,54 100,24 112,50|abcdef fg gh hi ijk ka||lmn opq|",
    "4,90 40,86 80,80 114,78 114,92 8,98 22,86 44,62 96,78 34,88 66,72|abcd de ef fa||ghi jki|",
    "6,92 30,86 70,82 108,78 112,92 60,96 14,98 22,84 34,66 48,84 44,84 58,56 72,82 66,82 80,42 106,40 108,78"
    "|abcde efg ga||hij klm no op pq|",
    "6,84 30,78 70,72 110,66 113,94 60,98 8,100 20,78 40,56 58,74 70,70 96,48 110,66"
    "|abcde ef fg ga||hij klm|",
)
_SNEAKERS = (
    "5,90 12,78 40,68 60,52 72,46 88,60 106,50 111,66 113,90 112,99 6,99 44,66 54,74 52,60 62,68 60,54 70,62"
    " 74,86 96,66|abcd de efg gh hi ij jk ka|ai ij jk ka||lm no pq rs",
    "4,88 16,76 46,66 62,56 88,62 108,54 114,88 113,97 5,97 46,68 60,80 88,62"
    "|abcd def fg gh hi ia|ag gh hi ia||jkl",
    "5,88 14,74 42,64 58,42 66,32 86,38 106,28 110,56 114,86 113,102 6,102 42,62 56,70 50,52 64,60"
    " 58,42 72,50|abcd de efg gh hi ij jk ka|ai ij jk ka||lm no pq",
    "5,88 14,76 40,66 60,48 74,44 90,58 108,50 114,88 112,96 8,96 50,66 56,86 62,58 72,86 74,60 88,86"
    "|abcd de efg gh hi ij ja|||kl mn op",
)
_BAGS = (
    "18,50 106,50 112,108 8,108 38,50 42,24 60,12 78,24 82,50 14,66 108,66|ab bc cd da||efghi|jk",
    "22,44 98,44 104,112 16,112 40,44 46,10 74,10 80,44|ab bc cd da||ef fg gh|",
    "6,38 114,38 114,96 6,96 60,72|ab bc cd da|||aeb",
    "20,54 100,54 108,84 96,110 24,110 12,84 26,56 40,20 60,4 80,20 94,56 16,72 104,72|abcdefa||ghijk|lm",
    "24,36 96,36 106,60 102,110 18,110 14,60 46,36 48,20 72,20 74,36 30,68 90,68 30,98 90,98"
    "|abcdefa||gh hi ij|kl ln nm mk",
)
_ANKLE_BOOTS = (
    "5,94 12,80 40,68 56,52 58,14 106,12 108,60 112,92 112,104 6,104 46,66 58,74 54,52 68,58 58,34 70,38"
    "|abcd de ef fgh hi ij ja|ah hi ij ja||kl mn op",
    "4,100 14,84 44,72 60,52 66,10 106,10 106,60 112,84 110,108 92,108 88,94 56,100 40,106 8,106"
    "|abcd de ef fgh hi ij jk kl lm mn na|||",
    "5,92 14,78 44,68 60,52 66,34 106,32 108,64 113,92 112,102 6,102 76,33 80,60 94,60 96,32"
    "|abcd de ef fgh hi ij ja|kl lm mn nk||",
    "5,92 14,78 42,66 60,50 62,20 104,16 108,60 112,84 112,106 88,106 88,96 8,100"
    "|abcd de ef fgh hi ij jk kl la|||",
)

# For each class, in the order of Fashion-MNIST, the ways in which it is cut.
CUTS = (
    _T_SHIRTS,
    _TROUSERS,
    _PULLOVERS,
    _DRESSES,
    _COATS,
    _SANDALS,
    _SHIRTS,
    _SNEAKERS,
    _BAGS,
    _ANKLE_BOOTS,
)
