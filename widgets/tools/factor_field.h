// FactorField: a factor as a slider with a field beside it, from zero to four; 1 is in the middle.
#pragma once

#include <QDoubleSpinBox>
#include <QSlider>
#include <QWidget>

namespace stagewright {

class FactorField : public QWidget {
    Q_OBJECT
public:
    explicit FactorField(QWidget* parent = nullptr);
    double factor() const { return m_field->value(); }
    void setFactor(double factor);
    QDoubleSpinBox* field() { return m_field; }
    QSlider* slider() { return m_slider; }

signals:
    void changed();

private:
    static int placeOf(double factor);
    static double factorAt(int place);
    QSlider* m_slider;
    QDoubleSpinBox* m_field;
};

} // namespace stagewright
