module zeroshard

go 1.26.0
